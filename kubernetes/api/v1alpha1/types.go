package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
}

// PolicyStatus says what became of a policy.
type PolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions are about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Accepted and Conflicted.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// InForce is the spec that was accepted last; null: none.
	InForce *InForce `json:"inForce,omitempty"`
}

// InForce is an accepted spec.
type InForce struct {
	// Generation is the object's when it had this spec.
	Generation int64 `json:"generation"`
	// Spec is a copy of it.
	Spec map[string]any `json:"spec"`
}
