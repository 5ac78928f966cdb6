package demandfeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
)

// Resource is that of the objects.
var Resource = schema.GroupVersionResource{Group: nodedemand.Group, Version: nodedemand.APIVersion, Resource: nodedemand.Plural}

// nodes are the Nodes, each of which owns the object of its name.
var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// manager is who the API server notes as the owner of the object's fields.
const manager = "unthrottle-demand"

// patience is how long the API server has for an answer.
const patience = 30 * time.Second

// Options of Run.
type Options struct {
	Client dynamic.Interface
	// Metadata reads the Node without its status, which has most of its bytes.
	Metadata metadata.Interface
	// Node is whose object is written.
	Node string
	// Read gives what the node tells now, as recent.Rows.Spec does.
	Read func(now time.Time) (s nodedemand.Spec, leftOut []error, err error)
	// Every is the time between two looks.
	Every time.Duration
	Log   *slog.Logger
}

// writer is Run at work.
type writer struct {
	Options
	// written is what the API server has; nil: it is not known, or nothing that can be read.
	written *nodedemand.Spec
	// owner is the UID of the Node, with which the cluster deletes the object; "": neither it nor what is there is known.
	owner types.UID
	// asked is the end of the rows for which the Node was last asked for.
	asked time.Time
	// silent is the error that was told last.
	silent string
	// began is the first look; quiet: it was told that no rows come.
	began time.Time
	quiet bool
}

// Run keeps the node's object true until ctx ends.
func Run(ctx context.Context, o Options) error {
	switch {
	case o.Node == "":
		return errors.New("the node's name is missing: give --node, or NODE_NAME as the chart does")
	case o.Every <= 0:
		return fmt.Errorf("%v between two looks: give a time above 0", o.Every)
	}
	w := &writer{Options: o}
	wait := time.NewTimer(offset(o.Node, o.Every))
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
			wait.Reset(o.Every)
			w.look(ctx, time.Now())
		}
	}
}

// offset is when in the time between two looks a node looks.
func offset(node string, every time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(node)) // a hash.Hash never fails
	return time.Duration(h.Sum64() % uint64(every))
}

// look reads the rows, and writes the object if they say more than it.
func (w *writer) look(ctx context.Context, now time.Time) {
	spec, leftOut, err := w.Read(now)
	for _, one := range leftOut {
		w.Log.Warn("rows do not count for what this node tells of its demand", "error", one)
	}
	if err == nil {
		err = spec.Check()
	}
	if err == nil && !spec.Until.IsZero() {
		err = w.write(ctx, spec, now)
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.silent = ""
		w.watch(spec.Until, now)
	case w.silent != kindOf(err):
		w.silent = kindOf(err)
		w.Log.Error("schedulers are not told of this node's demand for now; it is tried again", "node", w.Node, "every", w.Every.String(),
			"error", err)
	}
}

// quietFor is for how long no rows may come before that is told: as long as a scheduler waits.
const quietFor = 3 * demand.SlotLength

// watch tells once that an agent keeps no rows, or no longer.
func (w *writer) watch(until, now time.Time) {
	if w.began.IsZero() {
		w.began = now
	}
	if until.Before(w.began) {
		until = w.began
	}
	quiet := now.Sub(until) > quietFor
	if quiet && !w.quiet {
		w.Log.Warn("the agent of this node writes no rows, so that its containers count as what they request; the agent's log says why",
			"node", w.Node, "since", until.UTC().Format(time.RFC3339))
	}
	w.quiet = quiet
}

// kindOf is what an error has in common with its next ones: those of the API server may have addresses and times in their text.
func kindOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	if errors.As(err, new(*asking)) {
		return "the API server does not answer"
	}
	return err.Error()
}

// asking is the error of a request for an object with the node's name.
type asking struct {
	kind, node string
	err        error
}

func (a *asking) Error() string {
	out := ""
	switch {
	case apierrors.IsForbidden(a.err) || apierrors.IsInvalid(a.err):
		out = "; the chart's demand.enabled=true gives its service account the rights and the admission policy, which wants a token of a pod " +
			"on this node"
	case !apierrors.IsNotFound(a.err):
	case a.kind == nodedemand.Kind:
		out = "; the cluster has no definition of it: install the chart with demand.enabled=true"
	default:
		out = "; --node must be the name that the node has in the cluster, as NODE_NAME of the chart is; a kubelet makes a Node that was " +
			"deleted anew when it starts"
	}
	return fmt.Sprintf("%s %s: %v%s", a.kind, a.node, a.err, out)
}

// Unwrap is what the API server said.
func (a *asking) Unwrap() error { return a.err }

// write writes the object if that is news to what is there.
func (w *writer) write(ctx context.Context, spec nodedemand.Spec, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.ask(ctx, spec.Until); err != nil {
		return err
	}
	if w.written != nil && !spec.NewsTo(w.written, now) {
		return nil
	}
	u, err := object(w.Node, w.owner, spec)
	if err != nil {
		return err
	}
	if _, err := w.Client.Resource(Resource).Apply(ctx, w.Node, u, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		w.owner, w.written = "", nil // the write may have happened all the same
		return &asking{nodedemand.Kind, w.Node, err}
	}
	w.written = &spec
	return nil
}

// ask reads which Node owns the object, once for the rows up to a time. A Node that was deleted and made anew has another UID, and the
// cluster deletes what the one before owns: so the object counts as written only if this one owns it.
func (w *writer) ask(ctx context.Context, until time.Time) error {
	if w.owner != "" && until.Equal(w.asked) {
		return nil
	}
	// With "0" the API server answers from memory, and etcd is not asked. An answer that is too old is corrected by the next rows'.
	n, err := w.Metadata.Resource(nodes).Get(ctx, w.Node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return &asking{"Node", w.Node, err}
	}
	if owner := n.GetUID(); owner != w.owner {
		u, err := w.Client.Resource(Resource).Get(ctx, w.Node, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // an apply says whether the definition is missing
			return &asking{nodedemand.Kind, w.Node, err}
		}
		w.owner, w.written = owner, nil
		if err == nil && slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }) {
			if there, err := nodedemand.Read(u.Object["spec"]); err == nil { // what cannot be read is replaced
				w.written = &there
			}
		}
	}
	w.asked = until
	return nil
}

// object is the NodeDemand of a node, which the cluster's garbage collector deletes once the Node is gone.
func object(node string, owner types.UID, spec nodedemand.Spec) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text, err := json.Marshal(map[string]any{"apiVersion": Resource.GroupVersion().String(), "kind": nodedemand.Kind,
		"metadata": map[string]any{"name": node, "ownerReferences": []metav1.OwnerReference{
			{APIVersion: nodes.GroupVersion().String(), Kind: "Node", Name: node, UID: owner}}}, "spec": spec})
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", nodedemand.Kind, node, err)
	}
	return u, nil
}
