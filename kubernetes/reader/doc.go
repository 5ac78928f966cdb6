// Package reader shows each user of a cluster what the agent of one node sees of the user's own pods.
//
// # Problem
//
// The agent answers to anyone who reaches it, and has no access to the Kubernetes API. A user of the cluster reaches a pod of the
// agent by port-forward. Who may not see a pod must learn nothing of it. So the agent answers on a socket, which no port-forward
// reaches, and this reader alone has.
//
// # Rule
//
// Each request has the user's bearer token. The API server says whose it is (TokenReview) and what the user may do
// (SubjectAccessReview):
//
//   - "get pods" in a namespace shows its containers: figures, policy, and what is in force.
//   - "create pods/exec" for a pod shows its recordings too. A recording has thread names and command lines, which one sees by
//     exec and not by get. It is sent without the names of whatever else ran on the node.
//   - "get nodes" shows what belongs to no pod: units and plain cgroups.
//
// Paths are those of the agent: GET /containers, /policy, /status, /recordings, /recordings/FILE. All else is refused. A
// recording that the user may not see and one that is not there have the same answer.
//
// # Example
//
// A service account that may get pods in namespace shop sees shop/cart, and of batch/etl on the same node not even the name.
//
// # Limits
//
// A verdict counts for [KeepVerdicts]. Without the API server nothing is shown. A user with a client certificate has no token: a
// certificate ends at the API server, so that nothing of it reaches a pod.
package reader
