package grpcshed

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/budget"
	"github.com/unthrottle/unthrottle/libs/go/shed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
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

// A real server with the interceptor is asked for its health.
func TestUnary(t *testing.T) {
	for name, c := range map[string]struct {
		rule   Rule
		err    error
		code   codes.Code
		class  budget.Class
		within time.Duration
	}{
		"admitted": {Rule{}, nil, codes.OK, budget.App, 0},
		"late": {Rule{Objective: map[budget.Class]time.Duration{budget.App: time.Second}},
			budget.ErrLate, codes.Unavailable, budget.App, time.Second},
		"a class of a method":  {Rule{Class: func(string) budget.Class { return budget.IO }}, nil, codes.OK, budget.IO, 0},
		"the caller has gone":  {Rule{}, context.Canceled, codes.Canceled, budget.App, 0},
		"the deadline is over": {Rule{}, context.DeadlineExceeded, codes.DeadlineExceeded, budget.App, 0},
	} {
		b := budgetOf{err: c.err}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.UnaryInterceptor(Unary(&b, c.rule)))
		healthpb.RegisterHealthServer(server, health.NewServer())
		go server.Serve(l)
		client, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		_, err = healthpb.NewHealthClient(client).Check(context.Background(), &healthpb.HealthCheckRequest{})
		if got := status.Code(err); got != c.code {
			t.Errorf("%s: %v, want %v", name, err, c.code)
		}
		client.Close()
		server.Stop()
		if b.class != c.class || b.within != c.within {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// A call within a request of net/http within the budget, and a task in it, run by one permit.
func TestTheBudgetIsAskedOnceForACall(t *testing.T) {
	b := budget.Process()
	began := b.Snapshot().Classes[budget.App].Started
	unary := Unary(b, Rule{})
	ran := 0
	h := shed.Handler(b, shed.Rule{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := unary(r.Context(), nil, &grpc.UnaryServerInfo{}, func(ctx context.Context, _ any) (any, error) {
			return nil, b.Do(ctx, budget.App, func() { ran++ })
		})
		if err != nil {
			t.Error(err)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if n := b.Snapshot().Classes[budget.App].Started - began; ran != 1 || n != 1 {
		t.Errorf("%d ran by %d permits", ran, n)
	}
}
