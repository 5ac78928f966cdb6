package runtimes

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

func TestWrite(t *testing.T) {
	limit, hostile := 1.5, "go1.26\x1b[2J"
	d := Document{Container: "cart", LimitCPUs: &limit, Processes: []runtimes.Decision{
		{PID: 7, Runtime: "JVM (HotSpot)", Decided: map[string]int{"processors": 2, "gc_threads": 2},
			Fits:     map[string]int{"processors": 1, "gc_threads": 1},
			Settings: map[string]string{"processors": "JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount"}, Live: true,
			Assumed: []string{"gc_threads"}},
		{PID: 6, Runtime: "JVM (HotSpot)", Decided: map[string]int{"compiler_threads": 3},
			Fits: map[string]int{"compiler_threads": 2}, Said: []string{"compiler_threads"}},
		{PID: 9, Runtime: "Go", Decided: map[string]int{"processors": 3}, Fits: map[string]int{"processors": 1},
			Told: map[string]string{"processors": "libs/go"},
			Live: true, Budget: &threadpool.Budget{LimitCPUs: &limit, Paced: true}},
		{PID: 8, Runtime: "Go", Version: &hostile, Decided: map[string]int{"processors": 1}, Fits: map[string]int{"processors": 1},
			Told: map[string]string{"processors": "GOMAXPROCS"}, Settings: map[string]string{"processors": "GOMAXPROCS"}},
		{PID: 5, Runtime: "Erlang/OTP", Decided: map[string]int{}, Fits: map[string]int{"schedulers": 1},
			Told: map[string]string{"schedulers": "ERL_FLAGS +SP"}, Settings: map[string]string{"schedulers": "ERL_FLAGS +S"}},
	}}
	var b strings.Builder
	if err := Write(&b, d, page.Style{Width: 160}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cart has a limit of 1.5 CPUs.", "its rule, at its start", "its rule, live",
		"its own word", "told, live", "process 9 says that its CPU budget is in force: limit 1.5 CPUs, pacing on.", `26\x1b[2J`,
		"told by ERL_FLAGS +SP"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Write(&b, Document{Container: "cart"}, page.Style{}); err != nil ||
		!strings.Contains(b.String(), "no limit") || !strings.Contains(b.String(), "none of its processes") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
