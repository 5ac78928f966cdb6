// Command kubectl-unthrottle is the plugin `kubectl unthrottle`: it shows which pods the kernel stops and why, forecasts
// remedies, and asks for one by an annotation of the pod.
//
// It reads through a port-forward to the agent of the pod's node, where package reader shows what the user may see. It
// explains and forecasts here, from the recording that it fetched, so that the node does nothing for it. It changes only
// objects of Kubernetes.
package main
