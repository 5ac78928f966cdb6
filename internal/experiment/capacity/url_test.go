package capacity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A good service that serves two requests at a time, 10 ms each, and refuses where 50
// wait, holds at most 200 a second: that is found, for real, over loopback.
func TestAServiceOfOnesOwn(t *testing.T) {
	require.CheckAll(t, "it measures for long what only `bench service` needs")
	require.Kernel(t)
	t.Parallel()
	free, waiting := make(chan struct{}, 2), atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer waiting.Add(-1)
		if waiting.Add(1) > 50 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		free <- struct{}{}
		time.Sleep(10 * ms)
		<-free
		fmt.Fprintln(w, "good")
	}))
	defer server.Close()
	// A bound so loose that a busy host does not make the generator late: it is the
	// refusals that end it.
	o := Options{URL: server.URL, Repeats: 2, Steps: 2, Step: time.Second,
		Objective: Objective{objective.Objective{Quantile: 0.9, Bound: 10 * time.Second}, 0.05}}
	r, err := Run(context.Background(), o)
	for try := 1; errors.As(err, new(*Saturated)) && try < 10; try++ { // the host is busy with other tests: nothing is said of the service
		t.Log(err)
		r, err = Run(context.Background(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := r.Remedies[0]
	if m.MaxLoad == nil || *m.MaxLoad < firstURLLoad || *m.MaxLoad > 320 {
		t.Errorf("it holds 200 requests per second, and %v were found: %+v", m.MaxLoad, m)
	}
	if len(m.Points) == 0 || m.Remedy != asItIs || m.CPUsGranted != nil {
		t.Errorf("%+v", m)
	}
}

// fake is a service that holds so many requests per second, and a generator that can
// send so many.
func fake(holds, sends float64) func(float64, uint64, string) (step, error) {
	return func(load float64, _ uint64, _ string) (step, error) {
		if load > sends {
			return step{}, &Saturated{"it was late"}
		}
		s := step{load: load, seconds: 1}
		n := uint64(load) + 1
		s.service.Intended, s.service.Answered = n, n
		took := ms
		if load > holds {
			took = time.Second
		}
		for range n {
			s.service.Latency.Add(took)
		}
		return s, nil
	}
}

func raisedURL(holds, sends float64) (Result, error) {
	r := &run{o: Options{URL: "http://127.0.0.1/", Repeats: 3, Steps: 4, Objective: DefaultObjective()}}
	return r.raiseURL(fake(holds, sends))
}

// Where the generator comes to its end first, the service's is not known: what it
// held is told, and that it may hold more.
func TestTheGeneratorsEndIsNotTheServices(t *testing.T) {
	for _, test := range []struct {
		holds, sends, low, high float64
		ended                   bool
	}{{300, 1e6, 220, 300, false}, {1e6, 300, 220, 300, true}} {
		r, err := raisedURL(test.holds, test.sends)
		if err != nil {
			t.Fatal(err)
		}
		m := r.Remedies[0]
		if m.MaxLoad == nil || *m.MaxLoad < test.low || *m.MaxLoad > test.high {
			t.Errorf("holds %v, sends %v: found %v", test.holds, test.sends, m.MaxLoad)
		}
		if said := strings.Contains(strings.Join(m.Why, "; "),
			"at its own end: the service may hold more"); said != test.ended || m.Noisy != test.ended {
			t.Errorf("holds %v, sends %v: %q", test.holds, test.sends, m.Why)
		}
	}
	if _, err := raisedURL(1e6, 1); !errors.As(err, new(*Saturated)) {
		t.Errorf("a generator that cannot send the first step: %v", err)
	}
	unmet := new(Unmet)
	if _, err := raisedURL(1, 1e6); !errors.As(err, &unmet) ||
		!strings.Contains(err.Error(), "even at 20 requests per second") || !strings.Contains(err.Error(), "--slo") {
		t.Errorf("an objective that nothing meets: %v", err)
	}
}

// What does not answer, or with errors only, is told after the first step, with how
// it failed.
func TestURLsThatCannotBeMeasured(t *testing.T) {
	require.Kernel(t)
	t.Parallel()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	t.Cleanup(failing.Close)
	for url, says := range map[string]string{failing.URL: "HTTP status 500", "http://127.0.0.1:1/": "refused"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			steps := 0
			o := Options{URL: url, Repeats: 2, Steps: 2, Step: time.Second, Progress: func(Event) { steps++ }}
			_, err := Run(context.Background(), o)
			unmet := new(Unmet)
			if !errors.As(err, &unmet) || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "not one request had a good answer") || steps != 1 {
				t.Errorf("%s: after %d steps %v", url, steps, err)
			}
		})
	}
	if _, err := Run(context.Background(), Options{URL: "ftp://127.0.0.1/"}); err == nil ||
		!strings.Contains(err.Error(), "give one such as http") {
		t.Error(err)
	}
}
