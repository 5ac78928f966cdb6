package counters

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand"
)

var hour = time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)

// kept is what a Prometheus answers, by a part of the query.
type kept map[string][]*model.SampleStream

func series(value float64, at time.Time, labels ...string) *model.SampleStream {
	s := &model.SampleStream{Metric: model.Metric{}}
	for i := 0; i < len(labels); i += 2 {
		s.Metric[model.LabelName(labels[i])] = model.LabelValue(labels[i+1])
	}
	s.Values = []model.SamplePair{{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(value)}}
	return s
}

func (k kept) ask(_ context.Context, query string, from, until time.Time, step time.Duration) (model.Matrix, error) {
	if from.Sub(hour) != 5*time.Minute && from != until || until.Sub(hour) != time.Hour || step != 5*time.Minute {
		return nil, errors.New("another range is wanted")
	}
	var answer model.Matrix
	for part, all := range k {
		if strings.Contains(query, part) {
			if all == nil {
				return nil, errors.New("it is down")
			}
			answer = append(answer, all...)
		}
	}
	return answer, nil
}

// imported are the rows of one hour.
func imported(t *testing.T, k kept, change func(*Options)) []demand.Row {
	t.Helper()
	var all []demand.Row
	o := Options{Ask: k.ask, Cluster: "eu1", NodeLabel: "node", From: hour, Until: hour.Add(time.Hour),
		Keep: func(_ time.Time, rows []demand.Row) error {
			all = append(all, rows...)
			return nil
		}}
	if change != nil {
		change(&o)
	}
	if n, err := Import(t.Context(), o); err != nil || n != len(all) {
		t.Fatalf("%d rows of %d, %v", len(all), n, err)
	}
	return all
}

// The worked example of the package: what counters tell, and what they do not.
func TestImport(t *testing.T) {
	cart := []string{"node", "n1", "namespace", "shop", "pod", "cart-7d9c5b8f6-x2x4x", "container", "app"}
	at := hour.Add(10 * time.Minute)
	rows := imported(t, kept{
		"usage_seconds": {series(90, at, cart...),
			series(3, at, "node", "n1", "namespace", "shop", "pod", "free", "container", "app")},
		"cfs_periods":                {series(2999.6, at, cart...)},
		"throttled_periods":          {series(120, at, cart...)},
		"throttled_seconds":          {series(20, at, cart...)},
		"spec_cpu_quota":             {series(0.5, at, cart...)},
		"(container_spec_cpu_period": {series(100000, at, cart...)},
		"spec_cpu_shares": {series(256, at, cart...),
			series(2, at, "node", "n1", "namespace", "shop", "pod", "free", "container", "app")},
		"working_set":                    {series(1<<30, at, cart...)},
		"machine_cpu_cores":              {series(4, at, "node", "n1")},
		"machine_memory_bytes":           {series(16<<30, at, "node", "n1")},
		"a metric that nobody asked for": {},
	}, nil)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	if r.Start != hour.Add(5*time.Minute) || r.Service != "shop/cart/app" || r.Cluster != "eu1" || r.Node != "n1" ||
		*r.UsedCPUSeconds != 90 || *r.OwnLimitCPUs != 0.5 ||
		*r.RequestCPUs != 0.25 || *r.Periods != 3000 || *r.ThrottledPeriods != 120 || *r.StoppedLowSeconds != 5 ||
		math.Abs(*r.StoppedHighSeconds-12) > 1e-9 ||
		*r.MemoryBytes != 1<<30 || *r.HostCPUs != 4 || *r.HostMemoryBytes != 16<<30 || *r.PeriodMicroseconds != 100000 {
		t.Errorf("%+v", r)
	}
	if r.WantedCPUSeconds != nil || r.Width != nil || r.Candidates != nil || r.CandidateSeconds != nil {
		t.Errorf("it tells what counters do not: %+v", r)
	}
	free := rows[1]
	if free.OwnLimitCPUs != nil || free.RequestCPUs != nil || free.StoppedHighSeconds != nil ||
		free.ThrottledPeriods != nil || free.Service != "shop/free/app" {
		t.Errorf("%+v", free)
	}
	if r.Cgroup == free.Cgroup || r.Cgroup <= 0 {
		t.Errorf("cgroups %d and %d", r.Cgroup, free.Cgroup)
	}
}

// What makes no sense is not known, and strangers' names are data.
func TestImportOfNonsense(t *testing.T) {
	at := hour.Add(time.Hour)
	bad := []string{"node", "n\x1b[2J", "namespace", "a", "pod", "b-0", "container", "c"}
	rows := imported(t, kept{
		"usage_seconds": {series(1, at, bad...), series(math.NaN(), at, "node", "n", "container", "x"),
			series(1, hour.Add(7*time.Minute), "node", "n", "container", "between")},
		"spec_cpu_quota":    {series(math.Inf(1), at, bad...)},
		"throttled_periods": {series(-3, at, bad...)},
	}, nil)
	if len(rows) != 1 || rows[0].Node != `n\x1b[2J` || rows[0].OwnLimitCPUs != nil || rows[0].ThrottledPeriods != nil ||
		rows[0].Start != hour.Add(55*time.Minute) {
		t.Errorf("%+v", rows)
	}
}

func TestImportFails(t *testing.T) {
	o := Options{Ask: kept{"cfs_periods": nil}.ask, NodeLabel: "instance", Match: `namespace="shop"`, From: hour,
		Until: hour.Add(time.Hour)}
	_, err := Import(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "it is down") || !strings.Contains(err.Error(), "2026-03-04 05:00") ||
		!strings.Contains(err.Error(), `by (instance, namespace, pod, container, id, cpu) (increase(container_cpu_cfs_periods_total{container!="",container!="POD",namespace="shop"}[5m]))`) {
		t.Errorf("error: %v", err)
	}
	full := errors.New("no room")
	o = Options{NodeLabel: "node", Ask: kept{
		"usage_seconds": {series(1, hour.Add(5*time.Minute), "node", "n", "container", "c")}}.ask, From: hour, Until: hour.Add(time.Hour),
		Keep: func(time.Time, []demand.Row) error { return full }}
	if _, err := Import(t.Context(), o); !errors.Is(err, full) {
		t.Errorf("error: %v", err)
	}
	if all := slices.Collect(func(yield func(string) bool) {
		for f := range numberOfFigures {
			if !yield(o.query(f)) {
				return
			}
		}
	}); len(slices.Compact(slices.Sorted(slices.Values(all)))) != int(numberOfFigures) {
		t.Errorf("two figures are asked by one query: %q", all)
	}
}

// What is there twice counts once, and is told; what cannot be told apart is refused, with the flag that helps.
func TestTwins(t *testing.T) {
	at := hour.Add(10 * time.Minute)
	labels := func(more ...string) []string {
		return append([]string{"node", "n1", "namespace", "shop", "pod", "cart-0", "container", "app"}, more...)
	}
	of := func(v float64, more ...string) *model.SampleStream { return series(v, at, labels(more...)...) }
	for name, c := range map[string]struct {
		usage []*model.SampleStream
		used  float64
		told  string // in what is told
		err   string
	}{
		"one": {[]*model.SampleStream{of(90, "id", "/a")}, 90, "", ""},
		"started again": {
			[]*model.SampleStream{of(60, "id", "/a", "name", "a"), of(30, "id", "/b", "name", "b")}, 90, "", ""},
		"two scrape jobs": {
			[]*model.SampleStream{of(90, "id", "/a", "job", "kubelet"), of(89, "id", "/a", "job", "cadvisor")}, 90,
			`2 values of the label job ("cadvisor", "kubelet")`, ""},
		"two replicas of Prometheus": {
			[]*model.SampleStream{of(90, "prometheus_replica", "a"), of(91, "prometheus_replica", "b")}, 91,
			"label prometheus_replica", ""},
		"CPUs beside a total": {
			[]*model.SampleStream{of(90, "id", "/a", "cpu", "total"), of(40, "id", "/a", "cpu", "cpu00"),
				of(50, "id", "/a", "cpu", "cpu01")}, 90, "", ""},
		"CPUs without a total": {
			[]*model.SampleStream{of(40, "id", "/a", "cpu", "cpu00"), of(50, "id", "/a", "cpu", "cpu01")}, 90, "", ""},
		"a total, and one without CPU": {
			[]*model.SampleStream{of(90, "id", "/a", "cpu", "total", "job", "a"), of(90, "id", "/a", "job", "b")}, 90, "label job", ""},
		"two clusters": {
			[]*model.SampleStream{of(90, "id", "/a", "cluster", "eu1"), of(30, "id", "/b", "cluster", "us1")}, 0, "",
			`take one: --match 'cluster="us1"'`},
		"two clusters by another name": {
			[]*model.SampleStream{of(90, "id", "/a", "region", "eu"), of(30, "id", "/b", "region", "us")}, 0, "",
			`n1/shop/cart-0/app is two containers: series are of 2 values of the label region`},
		"no label of the node": {[]*model.SampleStream{
			series(90, at, "instance", "h1", "namespace", "shop", "pod", "a-0", "container", "c"),
			series(30, at, "instance", "h2", "namespace", "shop", "pod", "a-0", "container", "c")}, 0, "", "--node-label instance"},
	} {
		var told []string
		var rows []demand.Row
		// The fake answers as "max by (…, id, cpu)" does.
		ask := func(_ context.Context, query string, _, _ time.Time, _ time.Duration) (model.Matrix, error) {
			if !strings.Contains(query, "usage_seconds") {
				return nil, nil
			}
			return c.usage, nil
		}
		_, err := Import(t.Context(), Options{Ask: ask, NodeLabel: "node", From: hour, Until: hour.Add(time.Hour),
			Tell: func(text string) { told = append(told, text) }, Keep: func(_ time.Time, all []demand.Row) error {
				rows = all
				return nil
			}})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || len(rows) > 0 {
				t.Errorf("%s: %v, %d rows", name, err, len(rows))
			}
		case err != nil || len(rows) != 1 || *rows[0].UsedCPUSeconds != c.used:
			t.Errorf("%s: %v, %+v", name, err, rows)
		case !strings.Contains(strings.Join(told, "\n"), c.told) || (c.told == "") != (len(told) == 0):
			t.Errorf("%s: told %q", name, told)
		}
	}
}

// A row that cannot be true is left out, and told.
func TestContradictions(t *testing.T) {
	at := hour.Add(10 * time.Minute)
	of := func(pod string) []string {
		return []string{"node", "n1", "namespace", "shop", "pod", pod, "container", "app"}
	}
	var told []string
	rows := imported(t, kept{
		"usage_seconds": {series(90, at, of("right")...), series(90, at, of("periods")...),
			series(90, at, of("throttled")...), series(600, at, of("used")...),
			series(2000, at, of("wider-than-the-node")...)},
		"cfs_periods": {series(3000, at, of("right")...), series(6000, at, of("periods")...),
			series(3000, at, of("throttled")...)},
		"throttled_periods": {series(6000, at, of("throttled")...)},
		"throttled_seconds": {series(1, at, of("throttled")...)},
		"spec_cpu_quota": {series(1.2, at, of("right")...), series(1.2, at, of("periods")...),
			series(1.2, at, of("throttled")...), series(1.2, at, of("used")...)},
		"(container_spec_cpu_period": {series(100000, at, of("right")...)},
		"machine_cpu_cores":          {series(4, at, "node", "n1")},
	}, func(o *Options) { o.Tell = func(text string) { told = append(told, text) } })
	if len(rows) != 1 || rows[0].Pod != "right" {
		t.Errorf("%+v", rows)
	}
	if len(told) != 1 || !strings.Contains(told[0], "4 rows of 2026-03-04 05:00 left out, which contradict "+
		"themselves, such as 6000 periods of 100ms in 300 s of n1/shop/periods/app") {
		t.Errorf("%q", told)
	}
}

// Shares tell a request only on a node whose shares are the kubelet's own. What the pod's specification says is known
// anywhere.
func TestRequests(t *testing.T) {
	at := hour.Add(10 * time.Minute)
	of := func(node, pod string) []string {
		return []string{"node", node, "namespace", "shop", "pod", pod, "container", "app"}
	}
	rows := imported(t, kept{
		"usage_seconds": {series(1, at, of("v1", "a")...), series(1, at, of("v1", "b")...),
			series(1, at, of("v2", "c")...), series(1, at, of("v2", "d")...),
			series(1, at, "node", "v2", "namespace", "shop", "pod", "e", "container", "istio-proxy")},
		"spec_cpu_shares": {series(1024, at, of("v1", "a")...), series(512, at, of("v1", "b")...),
			series(2597, at, of("v2", "c")...), series(2597, at, of("v2", "d")...)}, // weight 100: 1 CPU, or 2.54 by the older formula
		"kube_pod_container_resource_requests": {series(1, at, "namespace", "shop", "pod", "d", "container", "app")},
		// A sidecar is an init container of a pod's specification.
		"kube_pod_init_container_resource_requests": {series(0.1, at, "namespace", "shop", "pod", "e", "container", "istio-proxy")},
	}, nil)
	got := map[string]float64{}
	for _, r := range rows {
		if r.RequestCPUs != nil {
			got[r.Pod] = *r.RequestCPUs
		}
	}
	if want := map[string]float64{"a": 1, "b": 0.5, "d": 1, "e": 0.1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A pod's own limit holds for its containers, and is told where it is less than theirs. For how long it stopped them is not
// known.
func TestPodLimits(t *testing.T) {
	at := hour.Add(10 * time.Minute)
	of := func(v float64, pod, container string) *model.SampleStream {
		return series(v, at, "node", "n1", "namespace", "shop", "pod", pod, "container", container)
	}
	pod := func(v float64, pod string) *model.SampleStream {
		return series(v, at, "node", "n1", "namespace", "shop", "pod", pod)
	}
	ask := kept{
		"usage_seconds":              {of(90, "level", "app"), of(90, "level", "log"), of(90, "usual", "app"), of(90, "less", "app")},
		`quota{container!=""`:        {of(1, "usual", "app"), of(4, "less", "app")},
		`quota{container="",pod!=""`: {pod(2, "level"), pod(1, "usual"), pod(3, "less")},
		"cfs_periods":                {of(3000, "usual", "app"), of(3000, "less", "app")},
		"throttled_periods":          {of(300, "usual", "app"), of(0, "less", "app")},
		"throttled_seconds":          {of(20, "usual", "app"), of(0, "less", "app")},
	}
	for _, r := range imported(t, ask, nil) {
		scope, limit := container.ScopePod, map[string]float64{"level": 2, "usual": 1, "less": 3}[r.Pod]
		own := map[string]float64{"usual": 1, "less": 4}[r.Pod]
		if r.Pod == "usual" {
			scope = container.ScopeOwn
		}
		if r.LimitCPUs == nil || *r.LimitCPUs != limit || r.LimitScope != scope || (r.OwnLimitCPUs == nil) != (own == 0) ||
			own > 0 && *r.OwnLimitCPUs != own || (r.StoppedHighSeconds == nil) != (scope == container.ScopePod) {
			t.Errorf("%s/%s: %+v", r.Pod, r.Container, r)
		}
	}
}
