package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// leasesInMemory has one lease, with the API server's rules for versions, and counts requests.
type leasesInMemory struct {
	typed.LeaseInterface // what is not asked for

	mu       sync.Mutex
	lease    *coordination.Lease
	requests int
	fails    error
}

func (l *leasesInMemory) Leases(string) typed.LeaseInterface { return l }

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *leasesInMemory) ask() (unlock func(), err error) {
	l.mu.Lock()
	l.requests++
	return l.mu.Unlock, l.fails
}

func (l *leasesInMemory) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordination.Lease, error) {
	unlock, err := l.ask()
	defer unlock()
	switch {
	case err != nil:
		return nil, err
	case l.lease == nil:
		return nil, apierrors.NewNotFound(resource, name)
	}
	return l.lease.DeepCopy(), nil
}

func (l *leasesInMemory) Create(_ context.Context, of *coordination.Lease, _ metav1.CreateOptions) (*coordination.Lease, error) {
	unlock, err := l.ask()
	defer unlock()
	switch {
	case err != nil:
		return nil, err
	case l.lease != nil:
		return nil, apierrors.NewAlreadyExists(resource, of.Name)
	}
	l.lease = of.DeepCopy()
	l.lease.ResourceVersion = "1"
	return l.lease.DeepCopy(), nil
}

func (l *leasesInMemory) Update(_ context.Context, of *coordination.Lease, _ metav1.UpdateOptions) (*coordination.Lease, error) {
	unlock, err := l.ask()
	defer unlock()
	switch {
	case err != nil:
		return nil, err
	case of.ResourceVersion != l.lease.ResourceVersion:
		return nil, apierrors.NewConflict(resource, of.Name, errors.New("it has changed"))
	}
	version, _ := strconv.Atoi(of.ResourceVersion)
	l.lease = of.DeepCopy()
	l.lease.ResourceVersion = strconv.Itoa(version + 1)
	return l.lease.DeepCopy(), nil
}

// node takes part in the election until stop.
func (l *leasesInMemory) node(t *testing.T, name string, failed func(error)) (of *lease, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	of = &lease{client: l, namespace: "n", name: "l", identity: name, interval: time.Minute, failed: failed, changed: func() {}}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := of.keep(ctx); err != nil {
			t.Error(err)
		}
	})
	return of, func() {
		cancel()
		ended.Wait()
	}
}

// One of 1,000 nodes holds the lease, and all of them together ask the API server a few times a second.
func TestThousandNodesAskLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, most = 1000, 15 // requests a second
		l := &leasesInMemory{}
		var leases []*lease
		for i := range nodes {
			of, stop := l.node(t, fmt.Sprint("node-", i), func(err error) { t.Error(err) })
			defer stop()
			leases = append(leases, of)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		holders := 0
		for _, of := range leases {
			if of.held.Load() {
				holders++
			}
		}
		l.mu.Lock()
		before := l.requests
		l.mu.Unlock()
		time.Sleep(time.Hour)
		l.mu.Lock()
		perSecond := float64(l.requests-before) / time.Hour.Seconds()
		l.mu.Unlock()
		t.Logf("%d nodes ask %.1f times a second", nodes, perSecond)
		if holders != 1 || perSecond > most {
			t.Errorf("%d of %d nodes hold the lease, which ask %.1f times a second", holders, nodes, perSecond)
		}
	})
}

// A lease that was given back is taken at the next look. One whose holder is silent is taken after three intervals, and the
// holder has let go of it by then. What fails is told.
func TestLeaseChangesHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leasesInMemory{}
		told := 0
		a, stopA := l.node(t, "a", func(error) { told++ })
		time.Sleep(time.Second)
		b, stopB := l.node(t, "b", func(error) {})
		defer stopB()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !a.held.Load() || b.held.Load() || told > 0 {
			t.Fatalf("a holds %v, b %v, %d failures", a.held.Load(), b.held.Load(), told)
		}
		stopA()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if a.held.Load() || !b.held.Load() {
			t.Errorf("given back: a holds %v, b %v", a.held.Load(), b.held.Load())
		}
		l.mu.Lock()
		l.fails = errors.New("the API server is away")
		l.mu.Unlock()
		c, stopC := l.node(t, "c", func(error) { told++ })
		defer stopC()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if b.held.Load() || c.held.Load() || told == 0 {
			t.Errorf("without the API server: b holds %v, c %v, %d failures are told", b.held.Load(), c.held.Load(), told)
		}
		l.mu.Lock()
		l.fails = nil
		l.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if b.held.Load() == c.held.Load() {
			t.Errorf("the API server is back: b holds %v, c %v", b.held.Load(), c.held.Load())
		}
	})
}
