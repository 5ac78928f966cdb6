//go:build pins

// Package kubernetes keeps the versions of what its packages import.
package kubernetes

import (
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/client-go/rest"
)
