module github.com/unthrottle/unthrottle/bench/placement

go 1.26.0

replace github.com/unthrottle/unthrottle => ../..

require (
	github.com/containers/nri-plugins v0.14.0
	github.com/go-logr/logr v1.4.3
	github.com/kubernetes-sigs/dra-driver-cpu v0.2.0
	github.com/unthrottle/unthrottle v0.0.0-00010101000000-000000000000
	k8s.io/utils v0.0.0-20260707023825-cf1189d6abe3
)

require (
	github.com/google/renameio/v2 v2.0.2 // indirect
	github.com/intel/goresctrl v0.13.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
	k8s.io/apimachinery v0.36.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/containers/nri-plugins/pkg/topology => ./nritopology

replace github.com/unthrottle/unthrottle/libs/go => ../../libs/go
