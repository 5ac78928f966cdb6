// Command kubectl-unthrottle is the plugin `kubectl unthrottle`: it shows which pods the kernel stops and why, forecasts
// remedies, and asks for one by a ThrottlePolicy.
//
// It reads through a port-forward to the agent of the pod's node, where package reader shows what the user may see. It
// explains and forecasts here, from the recording that it fetched, so that the node does nothing for it. It writes
// ThrottlePolicies that it labels as its own, and no other object. A user without that right in a namespace changes nothing there.
//
// Example: `kubectl unthrottle fix cart-7d9c5-x2x4x` writes the ThrottlePolicy cart for the pods cart-*-????? of the Deployment
// cart, and waits for what the agents say of it.
package main
