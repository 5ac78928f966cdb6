package main

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// request is one request of an open loop.
type request struct {
	At   time.Duration `json:"at"` // since the load began
	Path string        `json:"path"`
}

// answer is what came of a request; MS is from its intended time.
type answer struct {
	At time.Duration `json:"at"`
	MS float64       `json:"ms"`
	OK bool          `json:"ok"`
}

// loadSpec is what a client does.
type loadSpec struct {
	Address  string
	Requests []request
	// Timeout of a try and how many more tries follow.
	Timeout time.Duration
	Retries int
}

// bursts are pings every 5 ms, and every 250 ms n works at once.
func bursts(d time.Duration, n int, work string) (requests []request) {
	for at := time.Duration(0); at < d; at += 5 * time.Millisecond {
		requests = append(requests, request{at, "/ping"})
		if at%(250*time.Millisecond) == 0 {
			for range n {
				requests = append(requests, request{at, work})
			}
		}
	}
	return requests
}

// spikeFrom and spikeTo are when spike sends three times as much.
const spikeFrom, spikeTo = 2500 * time.Millisecond, 5 * time.Second

// spike is the load of examples/scenarios/death-spiral-small.yaml: 67 requests a second, three times as many for 2.5 s.
func spike(d time.Duration, seed uint64, work func(cpu time.Duration) string) (requests []request) {
	r := rand.New(rand.NewPCG(seed, 0))
	at := time.Duration(0)
	for {
		perSecond := 67.0
		if at >= spikeFrom && at < spikeTo {
			perSecond *= 3
		}
		if at += time.Duration(r.ExpFloat64() / perSecond * float64(time.Second)); at >= d {
			return requests
		}
		requests = append(requests, request{at, work(time.Duration(r.ExpFloat64() * 3 * float64(time.Millisecond)))})
	}
}

// load is the whole life of a client: its spec comes on standard input, its answers go to standard output.
func load() error {
	var spec loadSpec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(send(spec))
}

func send(spec loadSpec) []answer {
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	answers := make([]answer, len(spec.Requests))
	var group sync.WaitGroup
	begun := time.Now()
	for i, q := range spec.Requests {
		time.Sleep(time.Until(begun.Add(q.At)))
		group.Go(func() {
			ok := false
			for range spec.Retries + 1 {
				if ok = try(&client, "http://"+spec.Address+q.Path, spec.Timeout); ok {
					break
				}
			}
			answers[i] = answer{q.At, float64((time.Since(begun) - q.At).Microseconds()) / 1000, ok}
		})
	}
	group.Wait()
	return answers
}

func try(client *http.Client, url string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// quantile of the answers' times that a filter lets pass, which are sorted for it.
func quantile(requests []request, answers []answer, path string, from time.Duration, q float64) float64 {
	var all []float64
	for i, a := range answers {
		if a.At >= from && (requests[i].Path == "/ping") == (path == "/ping") {
			all = append(all, a.MS)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return stats.Rank(all, q)
}

// recovered is how long after the spike answers were good again: from the first second after which no second has more than
// one in twenty failed or slower than the timeout. nil: not until the end.
func recovered(answers []answer, end, timeout time.Duration) *float64 {
	good := 0.0
	for at := spikeTo; at < end; at += time.Second {
		bad, n := 0, 0
		for _, a := range answers {
			if a.At >= at && a.At < at+time.Second {
				n++
				if !a.OK || a.MS > float64(timeout.Milliseconds()) {
					bad++
				}
			}
		}
		if bad*20 > n {
			good = (at + time.Second - spikeTo).Seconds()
		}
	}
	if good >= (end - spikeTo).Seconds() {
		return nil
	}
	return &good
}
