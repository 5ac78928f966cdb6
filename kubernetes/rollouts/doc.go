// Package rollouts reads what the decision on a policy's rollout rests on: the policy's pods and their PodDisruptionBudgets from
// the API server, the guard and the pods' latencies from a Prometheus. Package canary decides.
//
// # Rule
//
// The state that a policy's status keeps is all that is remembered. A Prometheus has the latencies of before the first draw still,
// so that they are asked for with that time when they are needed. Another controller can go on from the state, and one that was
// killed before it wrote its decision has changed nothing.
//
// A pod belongs to a policy where the rule in force of one of its containers is the policy's, and has a remedy. The policies of a
// namespace share what is listed of it in one [Pass].
//
// # Limits
//
// Pods that are not known to agents by their UIDs (static pods) are counted and never treated. More than 20,000 pods of a
// namespace are an error. Which addresses are asked is what a ClusterThrottlePolicy allows; redirects are not followed, and no
// answer is larger than 16 MiB.
package rollouts
