// Package demandfeed keeps the NodeDemand of one node true to the rows that the node's agent keeps.
//
// # Problem
//
// A scheduler that chooses nodes by what their containers want has to be told of it by each node. The agent, which knows it, never
// uses the API of Kubernetes.
//
// # Rule
//
// [Run] looks once a minute whether the agent's files of rows changed, and writes the object with the node's name by server-side
// apply. It writes nothing while there are no rows, once for a slot of five minutes at most, and not if all figures are the same,
// unless the object's rows would get too old meanwhile (nodedemand.Refresh). What it wrote is compared with; after a start, what is
// there. For each slot it reads the Node's metadata, because a Node that was deleted and made anew has another UID: the object is then
// written with that as its owner, also if all figures are the same. It never deletes anything, and names no other node. What the API
// server refuses is tried again at the next look, and told once until another error comes. The looks of nodes are spread over the minute
// by their names.
//
// # Example
//
// The rows of 12:00 to 12:05 are in the file at 12:05:02. A node that looks at second 40 writes them at 12:05:40, with 12:05 as until.
// At 12:10:40 two CPUs are wanted as before: nothing is written. At 12:15:40 it is, although nothing changed: at the next slot
// the object would be 15 minutes old.
//
// # Limits
//
// Whether a node may write the objects of others is the API server's to say: the chart's ValidatingAdmissionPolicy forbids it. The
// Node owns the object, so that the cluster's garbage collector deletes it with the Node. For up to five minutes after a Node was made
// anew there may be no object, and its pods count as their requests.
package demandfeed
