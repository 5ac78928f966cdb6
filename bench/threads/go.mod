module github.com/unthrottle/unthrottle/bench/threads

go 1.26.0

replace github.com/unthrottle/unthrottle => ../..

replace github.com/unthrottle/unthrottle/libs/go => ../../libs/go

require (
	github.com/unthrottle/unthrottle v0.0.0-00010101000000-000000000000
	github.com/unthrottle/unthrottle/libs/go v0.0.0-00010101000000-000000000000
)

require (
	github.com/google/renameio/v2 v2.0.2 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.49.0 // indirect
	k8s.io/utils v0.0.0-20260707023825-cf1189d6abe3 // indirect
)
