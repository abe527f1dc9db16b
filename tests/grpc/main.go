// Drives grpc_peer as the kubelet drives a device plugin, and serves Register and List for it.
//
//	grpc-peer PROGRAM PLUGIN FOLDER
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	pods "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	devices  = 100000
	listIDs  = 50000
	patience = 60 * time.Second
)

var passed, failed int

func check(name string, good bool, why ...any) {
	if good {
		passed++
		fmt.Println("ok", name)
		return
	}
	failed++
	fmt.Println("FAILED", name, fmt.Sprint(why...))
}

type kubelet struct {
	plugin.UnimplementedRegistrationServer
	pods.UnimplementedPodResourcesListerServer
	registered chan *plugin.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, r *plugin.RegisterRequest) (*plugin.Empty, error) {
	k.registered <- r
	return &plugin.Empty{}, nil
}

func (k *kubelet) List(context.Context, *pods.ListPodResourcesRequest) (*pods.ListPodResourcesResponse, error) {
	ids := make([]string, listIDs)
	for i := range ids {
		ids[i] = fmt.Sprintf("0.%d", i)
	}
	return &pods.ListPodResourcesResponse{PodResources: []*pods.PodResources{{
		Name: "p", Namespace: "ns", Containers: []*pods.ContainerResources{{
			Name:    "c",
			Devices: []*pods.ContainerDevices{{ResourceName: "aliyun.com/gpu-mem", DeviceIds: ids}},
		}},
	}}}, nil
}

func code(err error) codes.Code { return status.Code(err) }

// list reads both lists of ListAndWatch.
func list(ctx context.Context, c plugin.DevicePluginClient) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ListAndWatch(ctx, &plugin.Empty{})
	check("ListAndWatch starts", err == nil, err)
	for i, health := range []string{plugin.Healthy, plugin.Unhealthy} {
		got, err := stream.Recv()
		if err != nil {
			check("a list", false, err)
			return
		}
		d := got.Devices
		check(fmt.Sprintf("list %d is whole", i), len(d) == devices, len(d))
		check(fmt.Sprintf("list %d, first device", i), d[0].ID == "0.0" && d[0].Health == health, d[0])
		last := d[len(d)-1]
		check(fmt.Sprintf("list %d, last device", i), last.ID == fmt.Sprintf("0.%d", devices-1) &&
			last.Health == plugin.Healthy && len(last.Topology.Nodes) == 1, last)
	}
}

func allocate(ctx context.Context, c plugin.DevicePluginClient) {
	r, err := c.Allocate(ctx, &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{
		{DevicesIds: []string{"0.7", "0.8"}}, {DevicesIds: []string{"1.1"}}}})
	good := err == nil && len(r.ContainerResponses) == 2
	check("Allocate", good, err)
	if !good {
		return
	}
	a := r.ContainerResponses[0]
	check("envs", a.Envs["FIRST"] == "0.7" && len(a.Envs) == 1, a)
	check("mounts", len(a.Mounts) == 1 && a.Mounts[0].ContainerPath == "/c" && a.Mounts[0].ReadOnly, a)
	check("device nodes", len(a.Devices) == 1 && a.Devices[0].HostPath == "/dev/b" && a.Devices[0].Permissions == "rw", a)
	check("annotations", a.Annotations["FIRST"] == "0.7", a)
	check("CDI", len(a.CdiDevices) == 1 && a.CdiDevices[0].Name == "cardpack.io/alloc=1", a)
	check("second container", r.ContainerResponses[1].Envs["FIRST"] == "1.1", r)
	var many []string
	for i := range devices {
		many = append(many, fmt.Sprintf("0.%d", i))
	}
	r, err = c.Allocate(ctx, &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: many}}})
	check("Allocate of all devices", err == nil && r.ContainerResponses[0].Envs["FIRST"] == "0.0", err)
	_, err = c.Allocate(ctx, &plugin.AllocateRequest{}, grpc.UseCompressor(gzip.Name))
	check("a compressed message is refused", code(err) == codes.Unimplemented &&
		strings.Contains(err.Error(), "compressed messages are not supported"), err)
}

func failures(ctx context.Context, c plugin.DevicePluginClient, said *lines) {
	_, err := c.PreStartContainer(ctx, &plugin.PreStartContainerRequest{})
	check("an error with its text", code(err) == codes.FailedPrecondition && status.Convert(err).Message() == "100 % ä", err)
	_, err = c.GetPreferredAllocation(ctx, &plugin.PreferredAllocationRequest{})
	check("an unknown method", code(err) == codes.Unimplemented, err)
	waits := &plugin.PreStartContainerRequest{DevicesIds: []string{"0.1"}}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	_, err = c.PreStartContainer(short, waits)
	cancel()
	check("a deadline", code(err) == codes.DeadlineExceeded, err)
	check("the plugin knows of the deadline", said.await("gone "+plugin.DevicePlugin_PreStartContainer_FullMethodName, 1))
	quit, cancel := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = c.PreStartContainer(quit, waits)
	check("a cancel", code(err) == codes.Canceled, err)
	check("the plugin knows of the cancel", said.await("gone "+plugin.DevicePlugin_PreStartContainer_FullMethodName, 2))
}

func parallel(ctx context.Context, c plugin.DevicePluginClient) {
	var wait sync.WaitGroup
	var lock sync.Mutex
	var wrong []error
	for i := range 64 {
		wait.Go(func() {
			id := fmt.Sprintf("2.%d", i)
			r, err := c.Allocate(ctx, &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{id}}}})
			if err == nil && r.ContainerResponses[0].Envs["FIRST"] != id {
				err = fmt.Errorf("%s: the answer of another call", id)
			}
			if err != nil {
				lock.Lock()
				wrong = append(wrong, err)
				lock.Unlock()
			}
		})
	}
	wait.Wait()
	check("64 parallel calls", len(wrong) == 0, wrong)
}

// lines collects what the plugin prints.
type lines struct {
	lock sync.Mutex
	all  []string
	more *sync.Cond
}

func (l *lines) read(from io.Reader) {
	for s := bufio.NewScanner(from); s.Scan(); {
		l.lock.Lock()
		l.all = append(l.all, s.Text())
		l.more.Broadcast()
		l.lock.Unlock()
	}
}

// await waits until a line has come n times.
func (l *lines) await(line string, n int) bool {
	end := time.Now().Add(patience)
	defer time.AfterFunc(patience, l.more.Broadcast).Stop()
	l.lock.Lock()
	defer l.lock.Unlock()
	for {
		have := 0
		for _, x := range l.all {
			if x == line {
				have++
			}
		}
		if have >= n || time.Now().After(end) {
			return have >= n
		}
		l.more.Wait()
	}
}

func dial(socket, authority string) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(authority),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", addr)
		}))
	if err != nil {
		panic(err)
	}
	return c
}

func main() {
	program, folder := os.Args[1], os.Args[3]
	ours, theirs := filepath.Join(folder, "kubelet.sock"), filepath.Join(folder, "plugin.sock")
	listener, err := net.Listen("unix", ours)
	if err != nil {
		panic(err)
	}
	k := &kubelet{registered: make(chan *plugin.RegisterRequest, 1)}
	server := grpc.NewServer()
	plugin.RegisterRegistrationServer(server, k)
	pods.RegisterPodResourcesListerServer(server, k)
	go server.Serve(listener)
	run := exec.Command(program, theirs, ours, fmt.Sprint(devices))
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		panic(err)
	}
	said := &lines{}
	said.more = sync.NewCond(&said.lock)
	go said.read(out)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	select {
	case r := <-k.registered:
		check("Register", r.Version == plugin.Version && r.Endpoint == "plugin.sock" &&
			r.ResourceName == "aliyun.com/gpu-mem" && r.Options.PreStartRequired, r)
	case <-ctx.Done():
		check("Register", false, "it does not come")
	}
	check("the plugin has the answer to Register", said.await("registered: ok", 1))
	check("the plugin has the list of pods", said.await(fmt.Sprintf("listed 1 pods, p has %d devices", listIDs), 1), said.all)
	// As kubelets name it: the newer ones, and those before about 1.26.
	for _, authority := range []string{"localhost", theirs} {
		conn := dial(theirs, authority)
		c := plugin.NewDevicePluginClient(conn)
		o, err := c.GetDevicePluginOptions(ctx, &plugin.Empty{})
		check("options with :authority "+filepath.Base(authority), err == nil && o.PreStartRequired, err)
		if authority == "localhost" {
			list(ctx, c)
			allocate(ctx, c)
			failures(ctx, c, said)
			parallel(ctx, c)
		}
		conn.Close()
	}
	check("the plugin knows that the list is gone", said.await("gone "+plugin.DevicePlugin_ListAndWatch_FullMethodName, 1))
	_ = run.Process.Signal(syscall.SIGTERM)
	check("the plugin ends without a fault", run.Wait() == nil)
	_, err = os.Stat(theirs)
	check("its socket is removed", os.IsNotExist(err), err)
	devicePlugin(ctx, os.Args[2], filepath.Join(folder, "device-plugins"))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
