package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// lease says which one of the controllers writes statuses. Whether the holder is gone is measured by this node's clock, as
// client-go's leader election does; its package needs the typed client of every API.
type lease struct {
	client                    dynamic.Interface
	namespace, name, identity string
	patience                  time.Duration
	held                      bool
	seen                      string // holder and time of renewal
	seenAt                    time.Time
}

// renew takes, keeps or looks at the lease.
func (l *lease) renew(ctx context.Context) error {
	of := l.client.Resource(leases).Namespace(l.namespace)
	u, err := of.Get(ctx, l.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		u = &unstructured.Unstructured{}
		u.SetAPIVersion("coordination.k8s.io/v1")
		u.SetKind("Lease")
		u.SetName(l.name)
		l.hold(u)
		_, err = of.Create(ctx, u, metav1.CreateOptions{})
		l.held = err == nil
		return ignoreRace(err)
	}
	if err != nil {
		l.held = false
		return err
	}
	holder, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	renewed, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
	if now := holder + " " + renewed; now != l.seen {
		l.seen, l.seenAt = now, time.Now()
	}
	if holder != l.identity && holder != "" && time.Since(l.seenAt) < l.patience {
		l.held = false
		return nil
	}
	l.hold(u)
	_, err = of.Update(ctx, u, metav1.UpdateOptions{})
	l.held = err == nil
	return ignoreRace(err)
}

func (l *lease) hold(u *unstructured.Unstructured) {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	spec["holderIdentity"], spec["renewTime"] = l.identity, time.Now().UTC().Format(metav1.RFC3339Micro)
	spec["leaseDurationSeconds"] = max(1, int64(l.patience/time.Second))
	u.Object["spec"] = spec
}

// ignoreRace drops the error of another controller having been faster.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// release gives the lease back, so that the next one need not wait.
func (l *lease) release() {
	if !l.held {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	of := l.client.Resource(leases).Namespace(l.namespace)
	u, err := of.Get(ctx, l.name, metav1.GetOptions{})
	if holder, _, _ := unstructured.NestedString(objectIn(u), "spec", "holderIdentity"); err != nil || holder != l.identity {
		return
	}
	unstructured.RemoveNestedField(u.Object, "spec", "holderIdentity")
	// Where this fails, the lease runs out.
	_, _ = of.Update(ctx, u, metav1.UpdateOptions{})
}

func objectIn(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}
