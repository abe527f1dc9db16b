//go:build tools

// Package tools names what scripts/control-plane builds of this module, for `go mod vendor`.
package tools

import (
	_ "k8s.io/kube-openapi/cmd/openapi-gen"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
