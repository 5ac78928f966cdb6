package policies

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
)

// The kinds of policies.
const (
	ThrottlePolicy        = "ThrottlePolicy"
	ClusterThrottlePolicy = "ClusterThrottlePolicy"
)

// Object is a policy as the API server has it. Its texts are strangers'.
type Object struct {
	Kind, Namespace, Name string
	Created               time.Time
	Generation            int64
	// Spec is as the API server sent it, with keys that this program may not know.
	Spec map[string]any
	// Kept is the spec that its status keeps as accepted last, and KeptGeneration its generation; nil: none was.
	Kept           map[string]any
	KeptGeneration int64
	// Rollout is the state that its status keeps; zero: none.
	Rollout canary.State
}

// Key names an object.
type Key struct{ Kind, Namespace, Name string }

// Key is the object's.
func (o Object) Key() Key { return Key{o.Kind, o.Namespace, o.Name} }

// String names the object for people: "ThrottlePolicy shop/cart".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// inOrder returns the objects in the order in which their rules stand: namespaced before cluster-wide, the oldest first.
func inOrder(objects []Object) []Object {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	return objects
}
