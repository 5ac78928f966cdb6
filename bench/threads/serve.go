package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/libs/go/budget"
	"github.com/unthrottle/unthrottle/libs/go/shed"
)

// variant is how the service is made.
type variant string

const (
	// net/http as it is, with the GOMAXPROCS that fits the limit, with pings in class IO and work in class App of the library but
	// without pacing, with pacing, and with work answered 503 that would wait longer than 150 ms.
	plain  variant = "plain"
	sized  variant = "GOMAXPROCS of sized"
	permit variant = "permits"
	paced  variant = "permits and pacing"
	shedAt variant = "permits, pacing and shedding"

	// Netty as it is, with pings and work on its event loops, with work on as many threads of its own executors, and with work in a
	// BudgetEventExecutorGroup of libs/java.
	nettyInline    variant = "Netty, work on the event loops"
	nettyOffloaded variant = "Netty, work offloaded"
	nettyPaced     variant = "Netty, work offloaded within the budget"

	// Finagle as it is, with all requests on its event loops, with its own Offload Filter, and with BudgetRequests of libs/java.
	finagleInline    variant = "Finagle, work on the event loops"
	finagleOffloaded variant = "Finagle, its Offload Filter"
	finagleBudget    variant = "Finagle, work within the budget"
)

var (
	ofGo          = []variant{plain, sized, permit, paced}
	nettyVariants = []variant{nettyInline, nettyOffloaded, nettyPaced}
)

// ofNetty are the variants of a service of the JVM, by their names there.
var ofNetty = map[variant]string{nettyInline: "inline", nettyOffloaded: "offloaded", nettyPaced: "budget"}

// environment is what the service's process gets beside its own.
func (v variant) environment(limitCPUs float64) []string {
	if v == sized {
		return []string{"GOMAXPROCS=" + strconv.Itoa(max(1, int(limitCPUs)))}
	}
	return nil
}

// command starts a service: this program, or a JVM with the jar of libs/java/bench.
func (b *bench) command(v variant, part string) []string {
	if ofFinagle[v] != "" {
		return b.finagleCommand(v)
	}
	if name := ofNetty[v]; name != "" {
		return []string{"java", "-cp", b.jar, "io.github.unthrottle.bench.NettyService", name}
	}
	return []string{b.exe, part, string(v)}
}

// settle is how long a service runs before it is measured. The library learns the phase of the period meanwhile, and a JVM
// compiles: under 0.7 CPUs its compiler took 5 % of the time after 12 s, for 200 ms without a pause, and was the reason of most stops.
func (v variant) settle() time.Duration {
	switch {
	case ofNetty[v] != "":
		return 45 * time.Second
	case ofFinagle[v] != "":
		return 12 * time.Second
	}
	return 4 * time.Second
}

// work is the path of a request that takes so much CPU time.
func (b *bench) work(v variant, cpu time.Duration) string {
	if ofNetty[v] != "" {
		return fmt.Sprintf("/work?cpu_us=%d", cpu.Microseconds())
	}
	return fmt.Sprintf("/work?rounds=%d", b.rounds(cpu))
}

// block is what one round of work hashes.
var block [4096]byte

// burn computes so many rounds.
func burn(rounds int) byte {
	var sum [sha256.Size]byte
	for range rounds {
		sum = sha256.Sum256(block[:])
	}
	return sum[0]
}

// roundsPer measures how many rounds a thread makes in a time on the CPU.
func roundsPer(d time.Duration) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const sample = 200 * time.Millisecond
	n, begun := 0, workload.ThreadTime()
	for workload.ThreadTime()-begun < sample {
		burn(20)
		n += 20
	}
	return int(float64(n) * float64(d) / float64(sample))
}

// inflation is by how much a request's work grows for each request that is on its way, as with a heap that fills: that of
// examples/scenarios/death-spiral-small.yaml.
const inflation = 0.006

// handler answers /ping at once and /work?rounds=N after N rounds; with inflate=1 they grow with the requests on their way.
func handler(onTheirWay *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong") })
	mux.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		rounds, err := strconv.Atoi(r.FormValue("rounds"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.FormValue("inflate") != "" {
			rounds += int(float64(rounds) * inflation * float64(onTheirWay.Load()))
		}
		fmt.Fprint(w, burn(rounds))
	})
	return mux
}

// snapshot answers with the budget as JSON.
func snapshot(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(budget.Process().Snapshot()) // the client sees what is missing
}

// limited is at most 8 requests at once and 150 that wait, as in the scenario.
func limited(next http.Handler) http.Handler {
	threads, queue := make(chan struct{}, 8), make(chan struct{}, 8+150)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case queue <- struct{}{}:
			defer func() { <-queue }()
		default:
			http.Error(w, "queue full", http.StatusServiceUnavailable)
			return
		}
		threads <- struct{}{}
		defer func() { <-threads }()
		next.ServeHTTP(w, r)
	})
}

func classOf(r *http.Request) budget.Class {
	if r.URL.Path == "/ping" {
		return budget.IO
	}
	return budget.App
}

// serve is the whole life of a service: it waits for a line, serves until standard input ends, and says its address.
func serve(v variant, spiral bool) error {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("the line that says it may start: %w", err)
	}
	var onTheirWay atomic.Int64
	h := handler(&onTheirWay)
	if spiral {
		h = limited(h)
	}
	if v == permit || v == paced || v == shedAt {
		if err := budget.Setup(budget.Options{NoPacing: v == permit}); err != nil {
			return err
		}
		rule := shed.Rule{Class: classOf}
		if v == shedAt {
			rule.Objective = map[budget.Class]time.Duration{budget.App: 150 * time.Millisecond}
		}
		h = shed.Handler(budget.Process(), rule, h)
	}
	if v == paced {
		mux := http.NewServeMux()
		mux.HandleFunc("/snapshot", snapshot)
		mux.Handle("/", h)
		h = mux
	}
	within := h
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		onTheirWay.Add(1)
		defer onTheirWay.Add(-1)
		within.ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := http.Server{Handler: h}
	ended := make(chan error)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		ended <- server.Close()
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
