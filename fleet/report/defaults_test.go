package report

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// By library and setting the report has services, containers, threads and those that are too many by each container's
// limit, of the containers that run now. What the table of pools has not is by its threads' name.
func TestDefaults(t *testing.T) {
	netty := func(threads, runnable int32) demand.Pool {
		return demand.Pool{Pool: "netty-nio", Threads: threads, Runnable: runnable, RunnableP99: 1, Running: min(runnable, 2),
			DefaultCPUs: new(threads / 2)}
	}
	with := func(service string, no int, limit float64, pools ...demand.Pool) demand.Row {
		r := rowOf(service, no, noon, limit, 4)
		r.Pools = pools
		return r
	}
	bus := demand.Pool{Name: "event\x1bbus-*", Threads: 128, Runnable: 1}
	again := with("cart", 1, 4, netty(6, 7), demand.Pool{Pool: "of a newer program", Threads: 3, Runnable: 3})
	again.Pools[0].Threads, again.Pools[0].DefaultCPUs = 7, new(int32(4))
	again.Start, again.Began = noon.Add(demand.SlotLength), noon.Add(demand.SlotLength)
	pinned := with("mail", 4, 64, netty(8, 1))
	pinned.Remedy, pinned.AllowedCPUs = string(remedy.Pin), new(int32(2))
	unlimited := with("free", 5, 4, netty(10, 10))
	unlimited.LimitCPUs, unlimited.OwnLimitCPUs = nil, nil
	gone := with("gone", 6, 4, netty(1000, 1000))
	gone.Start, gone.Began, gone.Node = noon.Add(-demand.SlotLength*9), noon.Add(-demand.SlotLength*9), "gone"
	// Row 1 of cart ends with the second slot: the others have to go on too.
	rows := []demand.Row{with("cart", 1, 4, netty(8, 3), bus), again, gone}
	for _, r := range []demand.Row{
		with("cart", 2, 1.5, netty(128, 5), bus, demand.Pool{Pool: "tomcat", Threads: 200, Runnable: 50, Running: 3}),
		with("cart", 3, 1.5, netty(128, 5)), pinned, unlimited, rowOf("none", 7, noon, 4, 4),
	} {
		later := r
		later.Start, later.Began, later.Pools = again.Start, again.Began, nil
		rows = append(rows, r, later)
	}
	d, _ := written(t, rows...)
	if d.Containers != 6 || d.Defaults.Containers != 5 || d.Defaults.More != 0 {
		t.Errorf("%d of %d containers", d.Defaults.Containers, d.Containers)
	}
	want := []view.Default{
		{Pool: new("netty-nio"), Library: new("Netty's NIO event loop"), Setting: new("-Dio.netty.eventLoopThreads"), Services: 3,
			Containers: 5, Threads: 8 + 128 + 128 + 8 + 10, Runnable: 7 + 5 + 5 + 1 + 10, RunnableP99: 5, RunnableMost: 10,
			TooMany: new(int64(4 + 126 + 126 + 6)), DefaultCPUs: new(64), BeyondLimit: 3},
		{Name: new("event\\x1bbus-*"), Services: 1, Containers: 2, Threads: 256, Runnable: 2, RunnableMost: 1},
		{Pool: new("tomcat"), Library: new("Tomcat's worker threads (Spring Boot)"), Setting: new("server.tomcat.threads.max"),
			Services: 1, Containers: 1, Threads: 200, Runnable: 50, RunnableMost: 50, TooMany: new(int64(100))},
		{Name: new("of a newer program"), Services: 1, Containers: 1, Threads: 3, Runnable: 3, RunnableMost: 3},
	}
	for i, got := range d.Defaults.Pools {
		if i >= len(want) || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%d: %s", i, described(got))
		}
	}
	if len(d.Defaults.Pools) != len(want) {
		t.Errorf("%d pools", len(d.Defaults.Pools))
	}
	// Each service has its own part of them.
	if s := serviceOf(t, d, "mail/app"); len(s.Pools) != 1 || !reflect.DeepEqual(s.Pools[0], view.Default{Pool: want[0].Pool,
		Library: want[0].Library, Setting: want[0].Setting, Services: 1, Containers: 1, Threads: 8, Runnable: 1, RunnableP99: 1,
		RunnableMost: 1, TooMany: new(int64(6)), DefaultCPUs: new(4), BeyondLimit: 1}) {
		t.Errorf("%+v", s.Pools)
	}
	cart, none := serviceOf(t, d, "cart/app").Pools, serviceOf(t, d, "none/app").Pools
	if len(cart) != 4 || *cart[0].TooMany != 256 || len(none) > 0 {
		t.Errorf("%+v, %+v", cart, none)
	}
}

func described(d view.Default) string {
	text := ""
	for v, i := reflect.ValueOf(d), 0; i < v.NumField(); i++ {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && !f.IsNil() {
			f = f.Elem()
		}
		text += fmt.Sprintf("%s %v; ", v.Type().Field(i).Name, f)
	}
	return text
}

// Names are strangers', and as many as they like: those with most surplus threads stay, and the others are counted.
func TestDefaultsAreBounded(t *testing.T) {
	const names = 10 * maxDefaults
	sums := newDefaultSums()
	for i := range names {
		sums.add(samePool{ThreadName: fmt.Sprintf("name-%05d", i), Service: "service", Threads: 2 + i, Runnable: 1, Containers: 2})
		if len(sums.of.Pools) > 2*maxDefaults {
			t.Fatalf("%d pools are kept", len(sums.of.Pools))
		}
	}
	of := []view.Service{{Name: "service"}}
	d := sums.end(of)
	if own := of[0].Pools; len(own) != maxPools || *own[0].Name != *d.Pools[0].Name {
		t.Errorf("the service has %d pools, first %s", len(own), described(own[0]))
	}
	p := d.Pools
	if len(p) != maxDefaults || d.More != names-maxDefaults || *p[0].Name != fmt.Sprintf("name-%05d", names-1) ||
		p[len(p)-1].Threads != 2*(2+names-maxDefaults) {
		t.Errorf("%d pools and %d more: %s to %s", len(p), d.More, described(p[0]), described(p[len(p)-1]))
	}
}

// What comes back is known where one pool alone is too wide in a service, and recordings tell what pools that fit save.
func TestCoresOfDefaults(t *testing.T) {
	of := func(service string, no int, pools ...string) demand.Row {
		r := pricedAs(rowOf(service, no, noon, 8, 2), price("limit", 8000, 8000, 8000), price("pools", 5000, 5000, 5000))
		for _, p := range pools {
			r.Pools = append(r.Pools, demand.Pool{Pool: p, Threads: 16, Runnable: 2, Running: 2})
		}
		r.Pools = append(r.Pools, demand.Pool{Name: "of its own", Threads: 99})
		return r
	}
	unpriced := rowOf("mail", 5, noon, 8, 2)
	unpriced.Pools = []demand.Pool{{Pool: "jdk-fork-join", Threads: 16}}
	d, _ := written(t, of("cart", 1, "netty-nio", "tomcat"), of("cart", 2, "netty-nio"), of("web", 3, "netty-nio"),
		of("both", 4, "netty-nio", "hotspot-parallel-gc"), unpriced)
	got := map[string]*float64{}
	for _, p := range d.Defaults.Pools {
		if p.Pool != nil {
			got[*p.Pool] = p.Cores
		}
	}
	near(t, "of two services", got["netty-nio"], 9)
	for _, pool := range []string{"hotspot-parallel-gc", "jdk-fork-join"} {
		missing(t, pool, got[pool])
	}
}
