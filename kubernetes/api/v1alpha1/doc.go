// Package v1alpha1 holds the objects of the API group unthrottle.dev: ThrottlePolicy and ClusterThrottlePolicy.
package v1alpha1
