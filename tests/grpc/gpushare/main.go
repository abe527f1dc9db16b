// A double of gpushare's device plugin, written from what that plugin does and not from its code: it offers
// "UUID-_-N" for each unit, and takes for an Allocate the oldest pending pod of that size on its node.
//
//	gpushare --node=n1 --server=https://127.0.0.1:6443 --ca=ca.crt --token=TOKEN --memory=16 GPU-a GPU-b
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "aliyun.com/gpu-mem"
	count    = "aliyun.com/gpu-count"
	prefix   = "ALIYUN_COM_GPU_MEM_"
	endpoint = "aliyungpushare.sock"
	folder   = "/var/lib/kubelet/device-plugins"
)

var (
	node   = flag.String("node", "", "its name")
	server = flag.String("server", "", "URL of the API server")
	ca     = flag.String("ca", "", "file with the API server's CA")
	token  = flag.String("token", "", "for the API server")
	memory = flag.Int("memory", 16, "units of the first card, and so of each")
)

type api struct{ client *http.Client }

func (a *api) call(method, path, kind string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Content-Type", kind)
	reply, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, reply.Status, text)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

const strategic = "application/strategic-merge-patch+json"

// tellCount writes the number of cards, which is no device of the kubelet, into the node's status.
func (a *api) tellCount(cards int) error {
	counts := map[string]string{count: strconv.Itoa(cards)}
	status := map[string]any{"status": map[string]any{"capacity": counts, "allocatable": counts}}
	return a.call("PATCH", "/api/v1/nodes/"+*node+"/status", strategic, status, nil)
}

type pod struct {
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Spec struct {
		Containers []struct {
			Resources struct{ Limits map[string]string }
		}
	}
}

func (p *pod) total() int {
	sum := 0
	for _, c := range p.Spec.Containers {
		n, _ := strconv.Atoi(c.Resources.Limits[resource])
		sum += n
	}
	return sum
}

func (p *pod) assumed() uint64 {
	when, _ := strconv.ParseUint(p.Metadata.Annotations[prefix+"ASSUME_TIME"], 10, 64)
	return when
}

// candidates are the pods that wait for their card, the oldest first.
func (a *api) candidates() ([]pod, error) {
	var list struct{ Items []pod }
	query := url.Values{"fieldSelector": {"spec.nodeName=" + *node + ",status.phase=Pending"}}
	if err := a.call("GET", "/api/v1/pods?"+query.Encode(), "application/json", nil, &list); err != nil {
		return nil, err
	}
	var found []pod
	for _, p := range list.Items {
		_, assumed := p.Metadata.Annotations[prefix+"ASSUME_TIME"]
		if p.total() > 0 && assumed && p.Metadata.Annotations[prefix+"ASSIGNED"] == "false" {
			found = append(found, p)
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].assumed() < found[j].assumed() })
	return found, nil
}

func (a *api) assign(p *pod) error {
	notes := map[string]string{prefix + "ASSIGNED": "true", prefix + "ASSUME_TIME": strconv.FormatInt(time.Now().UnixNano(), 10)}
	patch := map[string]any{"metadata": map[string]any{"annotations": notes}}
	return a.call("PATCH", "/api/v1/namespaces/"+p.Metadata.Namespace+"/pods/"+p.Metadata.Name, strategic, patch, nil)
}

type devices struct {
	plugin.UnimplementedDevicePluginServer
	api   *api
	cards []string
	lock  sync.Mutex
	end   chan struct{}
}

func (d *devices) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (d *devices) PreStartContainer(context.Context, *plugin.PreStartContainerRequest) (*plugin.PreStartContainerResponse, error) {
	return &plugin.PreStartContainerResponse{}, nil
}

func (d *devices) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	var all []*plugin.Device
	for _, card := range d.cards {
		for i := range *memory {
			all = append(all, &plugin.Device{ID: fmt.Sprintf("%s-_-%d", card, i), Health: plugin.Healthy})
		}
	}
	if err := stream.Send(&plugin.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	select {
	case <-d.end:
	case <-stream.Context().Done():
	}
	return nil
}

// choose returns the value of NVIDIA_VISIBLE_DEVICES, the card's index, and the pod's total.
func (d *devices) choose(units int) (string, int, int) {
	none := fmt.Sprintf("no-gpu-has-%dGiB-to-run", units)
	pods, err := d.api.candidates()
	if err != nil {
		log.Print("pods: ", err)
		return none, -1, units
	}
	for _, p := range pods {
		if p.total() != units {
			continue
		}
		card, err := strconv.Atoi(p.Metadata.Annotations[prefix+"IDX"])
		if err != nil || card < 0 || card >= len(d.cards) {
			log.Print("no card for ", p.Metadata.Name)
			return none, -1, units
		}
		if err := d.api.assign(&p); err != nil {
			log.Print("assign: ", err)
			return none, -1, units
		}
		log.Print(p.Metadata.Name, " gets card ", card)
		return strconv.Itoa(card), card, p.total()
	}
	if len(d.cards) == 1 {
		return d.cards[0], 0, units
	}
	log.Print("no pod waits for ", units)
	return none, -1, units
}

func (d *devices) Allocate(_ context.Context, r *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	units := 0
	for _, c := range r.ContainerRequests {
		units += len(c.DevicesIds)
	}
	visible, card, total := d.choose(units)
	answer := &plugin.AllocateResponse{}
	for _, c := range r.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &plugin.ContainerAllocateResponse{Envs: map[string]string{
			"NVIDIA_VISIBLE_DEVICES": visible,
			prefix + "IDX":           strconv.Itoa(card),
			prefix + "POD":           strconv.Itoa(total),
			prefix + "CONTAINER":     strconv.Itoa(len(c.DevicesIds)),
			prefix + "DEV":           strconv.Itoa(*memory),
		}})
	}
	return answer, nil
}

// serve registers with the kubelet, and returns what ends it.
func serve(a *api, cards []string) (func(), error) {
	d := &devices{api: a, cards: cards, end: make(chan struct{})}
	path := filepath.Join(folder, endpoint)
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer()
	plugin.RegisterDevicePluginServer(s, d)
	go s.Serve(listener)
	end := func() {
		close(d.end)
		s.Stop()
		_ = os.Remove(path)
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err = plugin.NewRegistrationClient(conn).Register(ctx, &plugin.RegisterRequest{Version: plugin.Version, Endpoint: endpoint, ResourceName: resource})
	}
	if err != nil {
		end()
		return nil, err
	}
	log.Print("registered")
	return end, nil
}

// born tells one socket of the kubelet from the next one.
func born() uint64 {
	var s syscall.Stat_t
	if syscall.Stat(filepath.Join(folder, "kubelet.sock"), &s) != nil {
		return 0
	}
	return s.Ino ^ uint64(s.Ctim.Nano())
}

func main() {
	flag.Parse()
	pem, err := os.ReadFile(*ca)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	a := &api{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var end func()
	var known uint64
	for {
		if now := born(); now != 0 && now != known {
			if end != nil {
				end()
			}
			if err = a.tellCount(flag.NArg()); err == nil {
				end, err = serve(a, flag.Args())
			}
			if err == nil {
				known = now
			} else {
				end = nil
				log.Print(err)
			}
		}
		select {
		case <-stop:
			if end != nil {
				end()
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
