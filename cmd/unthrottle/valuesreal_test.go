package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestValuesForReal starts real programs with values in every form, as numbers and as none: what `runtimes` reads is what the runtime
// made of it. Where the runtime refuses to start, there is nothing to read.
func TestValuesForReal(t *testing.T) {
	require.CheckAll(t, "it starts each runtime of this host with each form of a value; internal/explain/threadpool has the rules of these")
	cgrouptest.New(t)
	if require.InLab() {
		t.Skip("needs the runtimes, which the guest has not; runs in a host with them")
	}
	numbers := []string{"3", "+3", "03", "010", "0", "-1", "", "abc", "3abc", "0x5", "5k", "1K", " 3", "3 ", "3.5", "3,1", "3_0", "default"}
	wrapped := append(slices.Clone(numbers), "4294967299")
	type variant struct {
		program, setting string
		env              string
		options          []string // {} is the value
		values           []string
	}
	variants := []variant{
		{"go", "go", "GOMAXPROCS", nil, numbers},
		{"tokio and rayon", "rust-tokio", "TOKIO_WORKER_THREADS", nil, numbers},
		{"tokio and rayon", "rust-rayon", "RAYON_NUM_THREADS", nil, numbers},
		{"openmp", "openmp", "OMP_NUM_THREADS", nil, append(slices.Clone(wrapped), "3,0", "3,", "3, 2 ")},
		{"openblas", "openblas", "OPENBLAS_NUM_THREADS", nil,
			append(slices.Clone(wrapped), "1", "+1", "01", " 1", "1 ", "1k", "1.5", "0x1", "4294967297")},
		{"node", "libuv", "UV_THREADPOOL_SIZE", nil, wrapped},
		{"node", "node-v8", "", []string{"--v8-pool-size={}"}, wrapped},
		{"python", "python", "PYTHON_CPU_COUNT", nil, wrapped},
		{"python", "python", "", []string{"-X", "cpu_count={}"}, wrapped},
		{"erlang", "erlang", "", []string{"+S", "{}"},
			[]string{"1", "3", "+3", "03", "0", "-1", "3abc", "abc", "0x5", " 2", "3.5", "2:", ":2", "2:1", "4:3", "2:-1", "2:0",
				"2:abc", "1:2"}},
	}
	all := maps.Clone(realRuntimes)
	for _, java := range require.JDK(t) {
		name := "java of " + filepath.Base(filepath.Dir(filepath.Dir(java)))
		all[name] = javaOf(java)
		variants = append(variants, variant{name, "jvm", "", []string{"-XX:ActiveProcessorCount={}"},
			append(slices.Clone(wrapped), "0X5", "-0x5", "0x1k", "-")})
	}
	for _, v := range variants {
		for _, value := range v.values {
			t.Run(fmt.Sprintf("%s %s%q %q", v.program, v.env, v.options, value), func(t *testing.T) {
				r := all[v.program]
				tr, command := cgrouptest.New(t), r.command(t, v.program)
				var options []string
				for _, option := range v.options {
					options = append(options, strings.ReplaceAll(option, "{}", value))
				}
				at := 1
				if v.program == "erlang" {
					at = len(command) // behind unshare and its own
				}
				s := &startedRuntime{realRuntime: r, path: tr.Make("value")}
				if v.env != "" {
					s.env = []string{v.env + "=" + value}
				}
				s.start(t, tr, slices.Insert(command, at, options...))
				settings := threadpool.Known().Settings()
				setting := settings[slices.IndexFunc(settings, func(o threadpool.Setting) bool { return o.Key == v.setting })]
				says, decision, started := s.figures(t)
				if !started {
					given, _ := setting.Given([]string{v.env + "=" + value}, slices.Concat([]string{v.program}, options))
					if given.Ignored && given.By.Name() == setting.Name() {
						t.Errorf("it does not start, and sized would hide that: %+v", given)
					}
					return
				}
				if said := says[setting.Decides]; said == 0 || said != decision.Decided[setting.Decides] {
					t.Errorf("%s is %d, by runtimes %+v", setting.Decides, said, decision)
				}
			})
		}
	}
}
