package realapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/kubernetes/scheduler/pooleddemand"
)

// counted is a connection of which the bytes are counted, TLS included.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// counting is the configuration of a client whose bytes are counted.
func counting(config *rest.Config, bytes *atomic.Int64) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &counted{conn, bytes}, err
	}
	return config
}

// drawnSpec is what a node with ten containers tells.
func drawnSpec(random *rand.Rand, node int) nodedemand.Spec {
	s := nodedemand.Spec{Version: nodedemand.Version, Until: time.Now().UTC().Truncate(time.Second)}
	four := func(v float64) float64 {
		_, err := fmt.Sscan(fmt.Sprintf("%.4g", v), &v)
		if err != nil {
			panic(err) // a figure of our own
		}
		return v
	}
	for i := range 10 {
		workload := fmt.Sprintf("service-%03d", random.IntN(200))
		c := nodedemand.Container{Namespace: "team-" + workload[8:10], Pod: fmt.Sprintf("%s-7d9c5b8f6b-x%03d%d", workload, node, i),
			Container: "app", Service: "team-" + workload[8:10] + "/" + workload + "/app", MostCPUs: 8}
		for range phases.Count {
			c.Phases = append(c.Phases, nodedemand.Phase{four(1260 + 10*random.Float64()), four(random.Float64()),
				four(random.Float64()), four(4 * random.Float64())})
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

// BenchmarkFeed says what one node's update of ten containers costs on a real API server, as an annotation of the Node and as an
// object NodeDemand: bytes on the wire for the writer and for one watcher, TLS included, and the bytes of what is stored. Nodes
// have 50 images, as many as a kubelet tells of.
func BenchmarkFeed(b *testing.B) {
	s := newServer(b)
	_, objects := s.install(b)
	random := rand.New(rand.NewPCG(1, 1))
	const nodes = 50
	for i := range nodes {
		has := core.ResourceList{core.ResourceCPU: resource.MustParse("16"), core.ResourceMemory: resource.MustParse("64Gi")}
		n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i)},
			Status: core.NodeStatus{Allocatable: has, Capacity: has}}
		for k := range 50 {
			n.Status.Images = append(n.Status.Images, core.ContainerImage{SizeBytes: 1e8, Names: []string{
				fmt.Sprintf("registry.example.com/team/service-%03d@sha256:%064x", k, k),
				fmt.Sprintf("registry.example.com/team/service-%03d:1.2.3", k)}})
		}
		if _, err := s.client.CoreV1().Nodes().Create(b.Context(), n, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		if _, err := objects.Resource(pooleddemand.Resource).Create(b.Context(), objectOf(n.Name, drawnSpec(random, i)),
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	var annotates, watchesNodes, writes, watchesDemands atomic.Int64
	proto := func(bytes *atomic.Int64) kubernetes.Interface { // as a scheduler and a kubelet ask
		config := counting(s.config, bytes)
		config.ContentType = "application/vnd.kubernetes.protobuf"
		return must(b)(kubernetes.NewForConfig(config)).(kubernetes.Interface)
	}
	dyn := func(bytes *atomic.Int64) dynamic.Interface {
		return must(b)(dynamic.NewForConfig(counting(s.config, bytes))).(dynamic.Interface)
	}
	annotator, writer := proto(&annotates), dyn(&writes)
	nodeWatch := must(b)(proto(&watchesNodes).CoreV1().Nodes().Watch(b.Context(), metav1.ListOptions{})).(watch.Interface)
	demandWatch := must(b)(dyn(&watchesDemands).Resource(pooleddemand.Resource).Watch(b.Context(), metav1.ListOptions{})).(watch.Interface)
	for range nodes { // those that are there
		<-nodeWatch.ResultChan()
		<-demandWatch.ResultChan()
	}
	update := func(i int) (specBytes int) {
		name := fmt.Sprintf("node-%04d", i%nodes)
		spec := drawnSpec(random, i%nodes)
		text, err := json.Marshal(spec)
		if err != nil {
			b.Fatal(err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{"unthrottle.dev/demand": string(text)}}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := annotator.CoreV1().Nodes().Patch(b.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			b.Fatal(err)
		}
		whole, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := writer.Resource(pooleddemand.Resource).Patch(b.Context(), name, types.MergePatchType, whole,
			metav1.PatchOptions{}); err != nil {
			b.Fatal(err)
		}
		<-nodeWatch.ResultChan()
		<-demandWatch.ResultChan()
		return len(text)
	}
	for i := range nodes { // connections, and annotations
		update(i)
	}
	for _, c := range []*atomic.Int64{&annotates, &watchesNodes, &writes, &watchesDemands} {
		c.Store(0)
	}
	n, size := 0, 0
	for b.Loop() {
		size += update(n)
		n++
	}
	for name, c := range map[string]*atomic.Int64{"annotation-write-B": &annotates, "annotation-watch-B": &watchesNodes,
		"object-write-B": &writes, "object-watch-B": &watchesDemands} {
		b.ReportMetric(float64(c.Load())/float64(n), name)
	}
	b.ReportMetric(float64(size)/float64(n), "spec-B")
}

// must gives the value of a call that may not fail.
func must(b *testing.B) func(v any, err error) any {
	return func(v any, err error) any {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}
