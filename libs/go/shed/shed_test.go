package shed

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/budget"
)

// budgetOf answers as a budget in a state of the test's own.
type budgetOf struct {
	err    error
	class  budget.Class
	within time.Duration
}

func (b *budgetOf) Acquire(_ context.Context, c budget.Class) (budget.Permit, error) {
	b.class, b.within = c, 0
	return budget.Permit{}, b.err
}

func (b *budgetOf) AcquireWithin(_ context.Context, c budget.Class, within time.Duration) (budget.Permit, error) {
	b.class, b.within = c, within
	return budget.Permit{}, b.err
}

func TestHandler(t *testing.T) {
	var b budgetOf
	rule := Rule{
		Class: func(r *http.Request) budget.Class {
			if r.URL.Path == "/ping" {
				return budget.IO
			}
			return budget.App
		},
		Objective: map[budget.Class]time.Duration{budget.App: 50 * time.Millisecond},
	}
	h := Handler(&b, rule, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("done")) }))
	get := func(path string) *http.Response {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Result()
	}
	if r := get("/ping"); r.StatusCode != 200 || b.class != budget.IO || b.within != 0 {
		t.Errorf("a class without an objective: %d, %+v", r.StatusCode, b)
	}
	if r := get("/work"); r.StatusCode != 200 || b.class != budget.App || b.within != 50*time.Millisecond {
		t.Errorf("a class with an objective: %d, %+v", r.StatusCode, b)
	}
	b.err = budget.ErrLate
	if r := get("/work"); r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" {
		t.Errorf("late: %d, %v", r.StatusCode, r.Header)
	}
	b.err = nil
	if r := get("/work"); r.StatusCode != 200 {
		t.Errorf("then: %d", r.StatusCode)
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} { // a middleware's deadline, of which the client knows nothing
		b.err = err
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/work", nil))
		if w.Code != 503 {
			t.Errorf("%v: %d %q", err, w.Code, w.Body)
		}
	}
	Handler(&b, Rule{}, h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if b.class != budget.App {
		t.Errorf("without a rule: class %v", b.class)
	}
}

// The real budget of this process is an Acquirer, and a panic of a handler gives its permit back.
func TestAPanicReleases(t *testing.T) {
	b := budget.Process()
	h := Handler(b, Rule{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := budget.Wait(r.Context(), func() {
			if n := b.Snapshot().Classes[budget.App].Running; n != 0 {
				t.Errorf("a handler that waits for a database keeps its permit: %d run", n)
			}
		}); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	func() {
		defer func() { _ = recover() }()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}()
	if s := b.Snapshot().Classes[budget.App]; s.Running != 0 || s.Finished == 0 {
		t.Errorf("%+v", s)
	}
}

// A handler within a handler, and a task in it, run by one permit.
func TestTheBudgetIsAskedOnceForARequest(t *testing.T) {
	b := budget.Process()
	began := b.Snapshot().Classes[budget.App].Started
	h := Handler(b, Rule{}, Handler(b, Rule{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.Do(r.Context(), budget.App, func() { w.Write([]byte("done")) }); err != nil {
			t.Error(err)
		}
	})))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if n := b.Snapshot().Classes[budget.App].Started - began; w.Body.String() != "done" || n != 1 {
		t.Errorf("%q by %d permits", w.Body, n)
	}
}
