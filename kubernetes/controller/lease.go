package controller

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// releaseWithin is how long the end of the program waits for the lease to be given back. If that fails the lease runs out.
const releaseWithin = 5 * time.Second

// lease says which one of the controllers writes statuses: client-go's leader election. The holder renews it once per interval. The
// others ask for it at random moments, 1.6 intervals apart on average, and take it when it was not renewed for three.
//
// Worked example: with an interval of a minute, 1,000 nodes ask 10.4 times a second.
type lease struct {
	client                    typed.LeasesGetter
	namespace, name, identity string
	interval                  time.Duration
	// failed is told why the lease cannot be read or written, changed that this controller has got it.
	failed  func(error)
	changed func()
	held    atomic.Bool
}

// keep takes part until ctx ends, and then gives the lease back.
func (l *lease) keep(ctx context.Context) error {
	lock := &lock{LeaseLock: resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}, Client: l.client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.identity}}, failed: l.failed}
	// The election's own log would say each failure a second time.
	ctx = klog.NewContext(ctx, klog.Logger{})
	for ctx.Err() == nil {
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: l.name, ReleaseOnCancel: true,
			LeaseDuration: 3 * l.interval, RenewDeadline: 2 * l.interval, RetryPeriod: l.interval,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					l.held.Store(ctx.Err() == nil)
					l.changed()
				},
				OnStoppedLeading: func() { l.held.Store(false) },
			},
		})
		if err != nil {
			return err
		}
		e.Run(ctx)
	}
	return nil
}

// lock is client-go's, which tells of each failure.
type lock struct {
	resourcelock.LeaseLock
	failed func(error)
}

// tell tells of an error, unless it only says that another controller was faster, or that there is no lease yet.
func (l *lock) tell(err error) {
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		l.failed(err)
	}
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	l.tell(err)
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, r)
	l.tell(err)
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Update(ctx, r)
	l.tell(err)
	return err
}
