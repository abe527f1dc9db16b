// Asks a device plugin as the kubelet does for a container: Allocate with these device IDs. It prints the
// environment and the device nodes of the answer as JSON; an error of the plugin goes to stderr, exit status 1.
//
//	allocate /var/lib/kubelet/device-plugins/volcano.sock 0-0 0-1
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func allocate(socket string, ids []string) error {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request := &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: ids}}}
	answer, err := plugin.NewDevicePluginClient(connection).Allocate(limited, request)
	if err != nil {
		return err
	}
	one := answer.ContainerResponses[0]
	devices := []string{}
	for _, device := range one.Devices {
		devices = append(devices, device.HostPath)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"env": one.Envs, "devices": devices})
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: allocate SOCKET ID...")
		os.Exit(2)
	}
	if err := allocate(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
