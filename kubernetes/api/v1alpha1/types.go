package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The group and the version of the objects, and the plural names of the resources.
const (
	Group                   = "unthrottle.dev"
	Version                 = "v1alpha1"
	ThrottlePolicies        = "throttlepolicies"
	ClusterThrottlePolicies = "clusterthrottlepolicies"
	ConditionAccepted       = "Accepted"
	ConditionConflicted     = "Conflicted"
	ReasonAccepted          = "Accepted"
	ReasonNone              = "None"
	ReasonRuleNeverCounts   = "RuleNeverCounts"
)

// ThrottlePolicy says what the agents do about the containers of its own namespace, within what ClusterThrottlePolicies allow.
type ThrottlePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ThrottlePolicySpec `json:"spec"`
	Status PolicyStatus       `json:"status,omitempty"`
}

// ClusterThrottlePolicy is the default for namespaces, and says what their ThrottlePolicies may ask for.
type ClusterThrottlePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterThrottlePolicySpec `json:"spec"`
	Status PolicyStatus              `json:"status,omitempty"`
}

// ThrottlePolicySpec is what a ThrottlePolicy asks for.
type ThrottlePolicySpec struct {
	// Mode is observe (default) or apply.
	Mode string `json:"mode,omitempty"`
	// Rules are tried in order; the first that matches a container counts.
	Rules []Rule `json:"rules,omitempty"`
	// Rollout gives the remedy to a share of the pods first; null: to all at once. Only a ThrottlePolicy has it.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Rollout gives a policy's remedies to a share of its pods, drawn at random, and goes on or takes them back by what the others show.
type Rollout struct {
	// Share of the pods is treated first, such as 10%, at most 50%.
	Share string `json:"share"`
	// Watch is how long each step is watched, 5m to 24h.
	Watch string `json:"watch"`
	// Nodes is on how many nodes without a treated pod a step may begin; 0: any number.
	Nodes int64 `json:"nodes,omitempty"`
	// Latency is a query of Prometheus that gives a value by pod: the quantile of its requests.
	Latency string `json:"latency"`
	// Guard is what takes the remedies back at once.
	Guard Guard `json:"guard"`
}

// Guard is a value that must not be above a bound.
type Guard struct {
	// Prometheus is the URL of one that a ClusterThrottlePolicy allows.
	Prometheus string `json:"prometheus"`
	// Query gives one value; of several the largest counts.
	Query string `json:"query"`
	// Bound is the largest value that is no harm.
	Bound float64 `json:"bound"`
}

// ClusterThrottlePolicySpec is what a ClusterThrottlePolicy asks for.
type ClusterThrottlePolicySpec struct {
	ThrottlePolicySpec `json:",inline"`
	// Namespaces are patterns; none given: all namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	// Allow is what the ThrottlePolicies of these namespaces may ask for.
	Allow *Allowance `json:"allow,omitempty"`
}

// Allowance bounds ThrottlePolicies. Leaving containers alone is always allowed.
type Allowance struct {
	// Mode is observe (default) or apply.
	Mode string `json:"mode,omitempty"`
	// Remedies are names of remedies, or auto.
	Remedies []string `json:"remedies,omitempty"`
	// May are remedies that may grant more CPU than the limit.
	May []string `json:"may,omitempty"`
	// Prometheus are the URLs that rollouts may ask.
	Prometheus []string `json:"prometheus,omitempty"`
}

// PolicyStatus says what became of a policy.
type PolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions are about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Accepted and Conflicted.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// InForce is the spec that was accepted last; null: none.
	InForce *InForce `json:"inForce,omitempty"`
	// Rollout is how far the remedies have spread; null: the policy has no rollout.
	Rollout *RolloutStatus `json:"rollout,omitempty"`
}

// RolloutStatus is how far a policy's remedies have spread. Which pods have them follows from it.
type RolloutStatus struct {
	// Tried names what is tried: other rules begin anew.
	Tried string `json:"tried"`
	// Phase is Waits, Watches, Finishes, Kept or Reverted.
	Phase string `json:"phase"`
	// Why is the last decision's reason.
	Why string `json:"why"`
	// Step is how often the share doubled.
	Step int64 `json:"step"`
	// Seed orders the pods. Those up to Below in the order that were made by Newest are treated; of pods of one second the order
	// says which were made first.
	Seed   int64     `json:"seed"`
	Below  int64     `json:"below"`
	Newest time.Time `json:"newest,omitzero"`
	// Pods and Treated are how many there were at the last draw, with those that did not run yet.
	Pods    int64 `json:"pods"`
	Treated int64 `json:"treated"`
	// Begun is when the first pods were drawn, Drawn when the last ones were.
	Begun time.Time `json:"begun,omitzero"`
	Drawn time.Time `json:"drawn,omitzero"`
	// Until is when agents take back by themselves what was not judged.
	Until time.Time `json:"until,omitzero"`
	// Again is before which nothing is drawn.
	Again time.Time `json:"again,omitzero"`
}

// InForce is an accepted spec.
type InForce struct {
	// Generation is the object's when it had this spec.
	Generation int64 `json:"generation"`
	// Spec is a copy of it.
	Spec map[string]any `json:"spec"`
}
