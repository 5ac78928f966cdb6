package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// pageRules is a file as unthrottle-kubernetes writes it from the chart's file and the ThrottlePolicy shop-a/cart.
const (
	pageHead = "# Written by unthrottle-kubernetes from the chart's file and the policies. Changes are " +
		"lost.\nversion: 1\nmode: apply\nlisten: \":9469\"\nstate_dir: /var/lib/unthrottle\n"
	pageRules = pageHead + "rules:\n- policy: \"ThrottlePolicy shop-a/cart\"\n  mode: \"apply\"\n  \"match\":\n    " +
		"\"name\": \"cart-*-?????\"\n    \"namespace\": \"shop-a\"\n  \"remedy\": \"auto\"\n  \"verify\": \"probe\"\n"
)

// pageAt is when the pages are asked for.
var pageAt = time.Date(2026, 11, 24, 3, 12, 0, 0, time.UTC)

// pageCart is what a pool of eight threads under a limit of two CPUs makes of ten seconds: a recording of the flight recorder.
func pageCart() recording.Recording {
	s := recordingtest.New(8).Limit(200*time.Millisecond, 100*time.Millisecond)
	*s.Header() = func(h recording.Header) recording.Header {
		h.Created = pageAt.Add(-20 * time.Second)
		h.Target = recording.Target{Path: "/kubepods/burstable/podcart/app", ID: recordingtest.ContainerID,
			Name:      "shop-a/cart-7d9c5b8f6-x2x4x/app",
			Namespace: "shop-a", Pod: "cart-7d9c5b8f6-x2x4x", Container: "app"}
		return h
	}(*s.Header())
	workers := s.Threads("http-worker", 8)
	s.Repeat(50, 200*time.Millisecond, func(at time.Duration) { s.Work(at, 32*time.Millisecond, workers...) })
	return s.Run(10 * time.Second)
}

// pageAgent is an agent on the node n1 with the pod cart of a Deployment, which is stopped, the pod etl of another namespace, and
// a unit.
func pageAgent(t *testing.T, rules string, rounds int, held ...txn.InForce) *agent {
	t.Helper()
	r, err := policy.ParseRules([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(namespace, pod, folder string) container.Container {
		return container.Container{Name: namespace + "/" + pod + "/app", Namespace: namespace, Pod: pod,
			ContainerName: "app", Runtime: "containerd", QoS: container.Burstable,
			PodUID: folder, ID: folder, Group: cgroup.Group{Path: "/kubepods/burstable/pod" + folder + "/app"}}
	}
	second := time.Second
	quiet := func(c container.Container, used float64) observe.Observation {
		return observe.Observation{Container: c, Start: pageAt.Add(-second), Window: second, UsedCPUs: &used,
			StoppedLow: new(time.Duration), StoppedHigh: new(time.Duration), StoppedExact: true}
	}
	cart := quiet(pod("shop-a", "cart-7d9c5b8f6-x2x4x", "cart"), 1.28)
	cart.LimitCPUs, cart.LimitAt = new(2.0), cart.Container.Group.Path
	cart.Levels = []cgroup.Level{{Path: cart.Container.Group.Path,
		Limit: cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}}}
	cart.Periods, cart.ThrottledPeriods = new(uint64(10)), new(uint64(5))
	if len(held) == 0 {
		cart.StoppedLow, cart.StoppedHigh, cart.ThrottledBy = new(340*time.Millisecond), new(340*time.Millisecond), observe.BySelf
	} else {
		cart.ThrottledPeriods = new(uint64(0))
	}
	a := &agent{lastRound: pageAt, now: func() time.Time { return pageAt },
		Config: Config{Version: "v0.1.0", ConfigFile: "/run/unthrottle/rules.yaml", Rules: r}}
	a.shown = []observe.Observation{quiet(pod("batch", "etl-0", "etl"), 0.4), cart,
		quiet(container.Container{Name: "ssh", Unit: "ssh.service", Group: cgroup.Group{Path: "/system.slice/ssh.service"}}, 0.01)}
	a.heldShown = held
	a.chooser = newChooser(r, "")
	for range rounds {
		a.chooser.round(a.shown, held, pageAt)
	}
	a.recorder = &recorder{agent: a, store: flightrecorder.Store{Dir: t.TempDir()}}
	all := pageCart()
	if _, _, err := a.recorder.store.Save(pageAt.Add(-10*time.Second), recordingtest.ContainerID, all.Write); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPagesOfANode: testdata/pages has what an agent answers at five moments of one pod: without a rule for it, with one and not
// sure yet, at work, with a burst in force, and after its rule has gone. Programs that read these answers are tested
// with them (kubernetes/cmd/kubectl-unthrottle).
// UPDATE_GOLDEN=1 writes them.
func TestPagesOfANode(t *testing.T) {
	burst := txn.InForce{ID: "1", Target: "/kubepods/burstable/podcart/app", Name: "shop-a/cart-7d9c5b8f6-x2x4x/app",
		Remedy: "burst", Since: pageAt.Add(-5 * time.Second), By: "agent", Verdict: "better"}
	for stage, a := range map[string]*agent{
		"before": pageAgent(t, pageHead, persist), "confirming": pageAgent(t, pageRules, 1),
		"trying": pageAgent(t, pageRules, persist), "cured": pageAgent(t, pageRules, persist, burst),
		"kept": pageAgent(t, pageHead, persist, burst),
	} {
		a.Answers = filepath.Join(t.TempDir(), "agent.sock")
		client := serveSocket(t, a)
		for _, page := range []string{"containers", "policy", "status", "recordings"} {
			code, body := getBy(t, client, "http://agent/"+page)
			if code != http.StatusOK {
				t.Fatalf("%s: %d %s", page, code, body)
			}
			same(t, filepath.Join("testdata", "pages", stage, page+".json"), indented(t, body))
		}
		kept, err := a.keptRecordings()
		if err != nil || len(kept) != 1 {
			t.Fatal(kept, err)
		}
		_, body := getBy(t, client, "http://agent/recordings/"+kept[0].File)
		same(t, filepath.Join("testdata", "pages", kept[0].File), []byte(body))
	}
}

// indented is a JSON answer as people read it, its keys in order.
func indented(t *testing.T, body string) []byte {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// same compares with a golden file.
func same(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	} else if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is not what the agent answers; UPDATE_GOLDEN=1 go test ./internal/agent -run TestPagesOfANode writes it:\n%s", file, d)
	}
}
