package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

const goodShards = `version: 1
host: {cpus: 4}
cgroups:
  pod: {}
  shard: {parent: pod, quota: 60ms, remedy: {kind: burst, burst: 20ms}}
  beside: {}
workloads:
  first: {kind: burn, cgroup: beside}
  gc: {kind: gc, cgroup: shard, of: web, threads: 2, work: 4ms, requests: 100}
  web:
    kind: service
    cgroup: shard
    threads: 4
    work: 3ms
    arrivals: {per_second: 400}
    timeout: 250ms
    shards: {count: 3, balance: hash, skew: 0.5, dead: {after: 4}}
  last: {kind: sleeper, cgroup: beside}
`

func TestShards(t *testing.T) {
	s, err := Parse("good.yaml", []byte(goodShards))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, w := range s.Workloads {
		cgroup := s.Cgroups[w.Cgroup]
		line := fmt.Sprintf("%s in %s", w.Name, cgroup.Name)
		if w.Collector != nil {
			line += " of " + s.Workloads[w.Collector.Service].Name
		}
		if strings.HasPrefix(cgroup.Name, "shard") &&
			(cgroup.Limit.Quota != 60*time.Millisecond || cgroup.Remedy == nil || s.Cgroups[cgroup.Parent].Name != "pod") {
			t.Errorf("%s is no copy: %+v", cgroup.Name, cgroup)
		}
		if w.Kind == Service && (w.Shards != s.Workloads[w.Shards.First].Shards || w.Shards.First+w.Shard != i || w.Shards.Name != "web") {
			t.Errorf("workload %d: shard %d of %+v", i, w.Shard, w.Shards)
		}
		got = append(got, line)
	}
	want := "first in beside, gc-1 in shard-1 of web-1, gc-2 in shard-2 of web-2, gc-3 in shard-3 of web-3, " +
		"web-1 in shard-1, web-2 in shard-2, web-3 in shard-3, last in beside"
	if strings.Join(got, ", ") != want {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, ", "), want)
	}
	rule := balance.Rule{Shards: 3, Kind: balance.Hash, Skew: 0.5, DeadAfter: 4, DeadFor: defaultDeadFor}
	if r := s.Workloads[4].Shards.Balance; r != rule || r.Check() != nil {
		t.Errorf("%+v", r)
	}
	if _, refused := s.Remedied(); refused != nil {
		t.Error(refused)
	}
}

func TestBadShards(t *testing.T) {
	for _, test := range []struct {
		old, new string
		line     int
		want     string
	}{
		{"count: 3", "count: 1", 17, "shards.count: \"1\": give a whole number from 2 to 64"},
		{"count: 3, ", "", 17, "count is missing"},
		{"balance: hash", "balance: random", 17, "choose from round-robin, least-outstanding, hash"},
		{"balance: hash, ", "", 17, "shards.skew: goes with balance: hash; round-robin gives every shard the same"},
		{"skew: 0.5", "skew: 5", 17, "give a number from 0 to 4"},
		{"after: 4", "after: 0", 17, "from 1 to 1000"},
		{"after: 4", "for: 0s", 17, "give a time from 1ms"},
		{"after: 4", "until: 4s", 17, "choose from after, for"},
		{"    timeout: 250ms\n", "", 16, "dead: without a timeout a try fails only if it is refused"},
		{"web:\n    kind: service\n    cgroup: shard", "web:\n    kind: service", 9, "give both the same cgroup"},
		{"beside: {}", "beside: {parent: shard}", 17, "nothing can lie below it, and beside does"},
		{"sleeper, cgroup: beside", "sleeper, cgroup: shard", 17, "nothing else can be in it, and last is"},
		{"beside: {}", "beside: {}\n  shard-2: {}", 18, "a copy of cgroup shard would be shard-2, which exists already"},
		{"last:", "web-3:", 10, "a shard of it would be web-3, which exists already"},
		{"last:", "gc-1:", 9, "a shard of it would be gc-1, which exists already"},
		{"burst: 20ms", "burst: 90ms", 5, "cgroups.shard-1.remedy"},
		{"quota: 60ms", "quota: 60us", 5, "cgroups.shard-1.quota: 60µs is below the least of 1ms"},
		{"threads: 4", "threads: 30000", 0, "90011 threads, those of each shard counted"},
	} {
		refused(t, goodShards, test.old, test.new, test.line, test.want)
	}
	long := strings.Repeat("w", 62)
	refused(t, strings.Replace(goodShards, "of: web", "of: "+long, 1), "  web:\n", "  "+long+":\n", 10, "its name is longer than 63")
	none := strings.NewReplacer("gc:", "#gc:", ", cgroup: shard", "", "    cgroup: shard\n", "").Replace(goodShards)
	if _, err := Parse("bad.yaml", []byte(none)); err == nil || !strings.Contains(err.Error(), "give the service a cgroup") {
		t.Error(err)
	}
	many := strings.NewReplacer("count: 3", "count: 64", "remedy: {kind: burst, burst: 20ms}", "weight: 100").Replace(goodShards)
	if _, err := Parse("good.yaml", []byte(many)); err != nil {
		t.Error("64 shards: ", err)
	}
}
