package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

var events = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// maxMessage bounds a condition's message in bytes; the schema allows 2,048.
const maxMessage = 1000

// sent is a status that was written, and what the API server made of it. An older schema drops keys: the same is not written
// again and again.
type sent struct{ wanted, kept string }

// statuses writes those that are not as they should be, and an event for each condition that changed.
func (c *controller) statuses(ctx context.Context, live []*unstructured.Unstructured, out policies.Result,
	rollouts map[policies.Key]canary.State) {
	uids := map[string]bool{}
	for _, u := range sorted(live) {
		uid := string(u.GetUID())
		uids[uid] = true
		was := statusIn(u)
		key := objectOf(u).Key()
		want := wanted(u, out.Statuses[key], was)
		if state, ok := rollouts[key]; ok {
			kept := v1alpha1.RolloutStatus(state)
			want.Rollout = &kept
		}
		if encoded, is := encode(want), encode(was); encoded != is && (c.sent[uid] != sent{encoded, is}) {
			if err := c.write(ctx, u, was, want, encoded); err != nil && ctx.Err() == nil {
				c.Log.Warn("a status cannot be written", "policy", text.Sanitize(key.String(), 300), "error", err)
			}
		}
	}
	for uid := range c.sent {
		if !uids[uid] {
			delete(c.sent, uid)
		}
	}
}

func (c *controller) write(ctx context.Context, u *unstructured.Unstructured, was, want v1alpha1.PolicyStatus, encoded string) error {
	resource, namespace := clusterWide, ""
	if u.GetKind() == policies.ThrottlePolicy {
		resource, namespace = namespaced, u.GetNamespace()
	}
	data, err := json.Marshal(want)
	if err != nil {
		return err
	}
	var status map[string]any
	if err := json.Unmarshal(data, &status); err != nil {
		return err
	}
	next := u.DeepCopy()
	next.Object["status"] = status
	got, err := c.Client.Resource(resource).Namespace(namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil // it changed: the watch brings it again
	case err != nil:
		return err
	}
	c.sent[string(u.GetUID())] = sent{encoded, encode(statusIn(got))}
	var failed []error
	for _, now := range want.Conditions {
		if before := condition(was.Conditions, now.Type); before == nil && now.Status == metav1.ConditionFalse &&
			now.Type == v1alpha1.ConditionConflicted ||
			before != nil && before.Status == now.Status && before.Reason == now.Reason && before.Message == now.Message {
			continue
		}
		failed = append(failed, c.event(ctx, u, now))
	}
	if now := want.Rollout; now != nil && decidedSince(was.Rollout, now) {
		kind := text.Either(now.Phase == canary.Reverted, "Warning", "Normal")
		failed = append(failed, c.tell(ctx, u, kind, "Rollout"+now.Phase, now.Why))
	}
	return errors.Join(failed...)
}

// decidedSince tells whether something was decided on a rollout between two states: also to watch the same pods once more.
func decidedSince(before, now *v1alpha1.RolloutStatus) bool {
	return before == nil || before.Phase != now.Phase || before.Why != now.Why || !before.Drawn.Equal(now.Drawn)
}

// event tells of a condition.
func (c *controller) event(ctx context.Context, u *unstructured.Unstructured, now metav1.Condition) error {
	kind := "Normal"
	if (now.Type == v1alpha1.ConditionAccepted) != (now.Status == metav1.ConditionTrue) {
		kind = "Warning"
	}
	reason := now.Reason
	if now.Type == v1alpha1.ConditionConflicted {
		reason = map[bool]string{true: "Conflicted", false: "NoLongerConflicted"}[now.Status == metav1.ConditionTrue]
	}
	return c.tell(ctx, u, kind, reason, text.Either(now.Message == "", now.Type, now.Message))
}

// tell makes an event of a policy.
func (c *controller) tell(ctx context.Context, u *unstructured.Unstructured, kind, reason, message string) error {
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := time.Now().UTC().Format(time.RFC3339)
	_, err := c.Client.Resource(events).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"generateName": "unthrottle-policy-", "namespace": namespace},
		"involvedObject": map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
			"namespace": u.GetNamespace(), "name": u.GetName(),
			"uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()},
		"type": kind, "reason": reason, "message": message,
		"count": int64(1), "firstTimestamp": at, "lastTimestamp": at,
		"source": map[string]any{"component": component}, "reportingComponent": component,
	}}, metav1.CreateOptions{})
	return err
}

const component = "unthrottle-kubernetes"

// wanted is the status that an object should have. was keeps the times of conditions that did not change.
func wanted(u *unstructured.Unstructured, st policies.Status, was v1alpha1.PolicyStatus) v1alpha1.PolicyStatus {
	accepted := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonAccepted, Message: "its rules are in force"}
	if st.Wrong != nil {
		after := "none of it is in force"
		if st.InForce > 0 {
			after = fmt.Sprintf("what was accepted before (generation %d) stays in force", st.InForce)
		}
		accepted.Status, accepted.Reason = metav1.ConditionFalse, st.Wrong.Reason
		accepted.Message = text.Sanitize(st.Wrong.Error(), maxMessage-100) + "; " + after
	}
	conflicted := metav1.Condition{Type: v1alpha1.ConditionConflicted, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNone, Message: "each of its rules may count"}
	if len(st.Conflicts) > 0 {
		conflicted.Status, conflicted.Reason = metav1.ConditionTrue, v1alpha1.ReasonRuleNeverCounts
		conflicted.Message = text.Sanitize(strings.Join(st.Conflicts, "; "), maxMessage)
	}
	out := v1alpha1.PolicyStatus{ObservedGeneration: u.GetGeneration()}
	for _, now := range []metav1.Condition{accepted, conflicted} {
		now.ObservedGeneration, now.LastTransitionTime = u.GetGeneration(), metav1.Now().Rfc3339Copy()
		if before := condition(was.Conditions, now.Type); before != nil && before.Status == now.Status {
			now.LastTransitionTime = before.LastTransitionTime
		}
		out.Conditions = append(out.Conditions, now)
	}
	if st.InForce > 0 {
		out.InForce = &v1alpha1.InForce{Generation: st.InForce, Spec: st.Spec}
	}
	return out
}

func condition(conditions []metav1.Condition, of string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == of {
			return &conditions[i]
		}
	}
	return nil
}

// statusIn reads an object's status; the zero value if there is none that can be read.
func statusIn(u *unstructured.Unstructured) v1alpha1.PolicyStatus {
	var s v1alpha1.PolicyStatus
	data, err := json.Marshal(u.Object["status"])
	if err != nil || json.Unmarshal(data, &s) != nil {
		return v1alpha1.PolicyStatus{}
	}
	return s
}

// encode is a status without its times, to compare. Numbers read the same from either side.
func encode(s v1alpha1.PolicyStatus) string {
	conditions := s.Conditions
	s.Conditions = nil
	for _, c := range conditions {
		c.LastTransitionTime = metav1.Time{}
		s.Conditions = append(s.Conditions, c)
	}
	data, _ := json.Marshal(s) // of texts, numbers and lists: it cannot fail
	return string(data)
}
