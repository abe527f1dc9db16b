package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// manager does what the kubelet's device manager does: it dials the plugin within Register, and asks for
// the list afterwards.
type manager struct {
	plugin.UnimplementedRegistrationServer
	dir     string
	server  *grpc.Server
	lock    sync.Mutex
	full    bool // :authority is the path of the socket, as before about 1.26
	conn    *grpc.ClientConn
	listing chan plugin.DevicePlugin_ListAndWatchClient
}

func (m *manager) Register(ctx context.Context, r *plugin.RegisterRequest) (*plugin.Empty, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	check("Register of the plugin", r.Version == plugin.Version && r.Endpoint == "cardpack.sock" &&
		r.ResourceName == "aliyun.com/gpu-mem" && r.Options.PreStartRequired && r.Options.GetPreferredAllocationAvailable, r)
	socket, authority := filepath.Join(m.dir, r.Endpoint), "localhost"
	if m.full {
		authority = socket
	}
	m.full = !m.full
	m.conn = dial(socket, authority)
	c := plugin.NewDevicePluginClient(m.conn)
	o, err := c.GetDevicePluginOptions(ctx, &plugin.Empty{})
	check("options within Register", err == nil && o.PreStartRequired && o.GetPreferredAllocationAvailable, err)
	go func() {
		stream, err := c.ListAndWatch(context.Background(), &plugin.Empty{})
		if err == nil {
			m.listing <- stream
		}
	}()
	return &plugin.Empty{}, nil
}

// start removes all sockets and listens.
func (m *manager) start() {
	names, _ := filepath.Glob(filepath.Join(m.dir, "*"))
	for _, name := range names {
		_ = os.Remove(name)
	}
	listener, err := net.Listen("unix", filepath.Join(m.dir, "kubelet.sock"))
	if err != nil {
		panic(err)
	}
	m.server = grpc.NewServer()
	plugin.RegisterRegistrationServer(m.server, m)
	go m.server.Serve(listener)
}

func (m *manager) stop() {
	m.server.Stop()
	m.disconnect()
}

func (m *manager) disconnect() {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.conn.Close()
}

// lists awaits a stream and its last state: the first card's devices are unhealthy.
func (m *manager) lists(name string) {
	var stream plugin.DevicePlugin_ListAndWatchClient
	select {
	case stream = <-m.listing:
	case <-time.After(patience):
		check(name, false, "no ListAndWatch")
		return
	}
	for n := 1; ; n++ {
		got, err := stream.Recv()
		if err != nil {
			check(name, false, err)
			return
		}
		unhealthy := 0
		for _, d := range got.Devices {
			if d.Health != plugin.Healthy {
				unhealthy++
			}
		}
		if len(got.Devices) != devices || (unhealthy != 0 && unhealthy != devices/2) {
			check(name, false, len(got.Devices), " devices, unhealthy: ", unhealthy)
			return
		}
		if unhealthy > 0 {
			check(name, true)
			return
		}
	}
}

func (m *manager) calls(ctx context.Context, said *lines) {
	c := plugin.NewDevicePluginClient(m.conn)
	r, err := c.Allocate(ctx, &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{
		{DevicesIds: []string{"1.7", "1.8"}}, {DevicesIds: []string{"1.9"}}}})
	good := err == nil && len(r.ContainerResponses) == 2
	check("Allocate of two containers", good, err)
	if good {
		e := r.ContainerResponses[0].Envs
		check("the variables", len(e) == 5 && e["NVIDIA_VISIBLE_DEVICES"] == "GPU-peer" && e["ALIYUN_COM_GPU_MEM_IDX"] == "1" &&
			e["ALIYUN_COM_GPU_MEM_POD"] == "2" && e["ALIYUN_COM_GPU_MEM_CONTAINER"] == "2" && e["ALIYUN_COM_GPU_MEM_DEV"] == "80", e)
	}
	var all []string
	for card := range 2 {
		for i := range devices / 2 {
			all = append(all, fmt.Sprintf("%d.%s", card, base36(i)))
		}
	}
	p, err := c.GetPreferredAllocation(ctx, &plugin.PreferredAllocationRequest{ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{
		{AvailableDeviceIDs: all, MustIncludeDeviceIDs: []string{"1.0"}, AllocationSize: 40}}})
	good = err == nil && len(p.ContainerResponses) == 1 && len(p.ContainerResponses[0].DeviceIDs) == 40
	check("GetPreferredAllocation among all devices", good, err)
	for _, id := range p.GetContainerResponses()[0].GetDeviceIDs() {
		good = good && strings.HasPrefix(id, "1.")
	}
	check("the preferred devices are those of one card", good)
	_, err = c.PreStartContainer(ctx, &plugin.PreStartContainerRequest{DevicesIds: []string{"1.0", "1.1"}})
	check("PreStartContainer", err == nil && said.await("start 2", 1), err)
}

func base36(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	if n < 36 {
		return digits[n : n+1]
	}
	return base36(n/36) + digits[n%36:n%36+1]
}

// devicePlugin drives the device plugin of cardpack-node through what happens to it on a node.
func devicePlugin(ctx context.Context, program, dir string) {
	m := &manager{dir: dir, listing: make(chan plugin.DevicePlugin_ListAndWatchClient, 16)}
	run := exec.Command(program, dir, fmt.Sprint(devices))
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
	_ = os.Mkdir(dir, 0o755)
	m.start()
	m.lists("the list after the start")
	check("the plugin is registered", said.await("registered, restarted: yes", 1))
	m.calls(ctx, said)
	m.stop()
	m.start()
	m.lists("the list after the kubelet started again")
	check("the plugin knows that it started again", said.await("registered, restarted: yes", 2))
	m.disconnect()
	m.lists("the list after the kubelet disconnected")
	check("the plugin knows that it did not start again", said.await("registered, restarted: no", 1))
	kept := make(chan error, 1)
	go func() {
		_, err := plugin.NewDevicePluginClient(m.conn).Allocate(ctx, &plugin.AllocateRequest{
			ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"1.0", "1.1", "1.2"}}}})
		kept <- err
	}()
	time.Sleep(time.Second) // for the call to arrive: else it fails sooner, which is as good
	_ = os.Remove(filepath.Join(dir, "cardpack.sock"))
	check("a call ends with the socket", <-kept != nil)
	m.lists("the list after the socket was removed")
	_ = run.Process.Signal(syscall.SIGTERM)
	check("the device plugin ends without a fault", run.Wait() == nil)
	m.stop()
	left, _ := filepath.Glob(filepath.Join(dir, "cardpack*"))
	check("its socket is gone", len(left) == 0, left)
}
