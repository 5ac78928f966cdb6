// Package canary decides how a remedy spreads over the pods of a workload: which pods have it now, whether it goes on, and whether
// it is taken back from all. It is pure: what was seen, the time and chance are passed in, and the [State] is all that is kept.
//
// # Problem
//
// A remedy that helped one pod may harm the next one, on another node and with another load. Given to all pods at once it harms
// all of them, and nothing is left to compare with: the load of the day changes p99 too.
//
// # Rule
//
// Each pod has a place in a random order: a hash of its UID and the attempt's seed ([State.Treats]). The first of the order have
// the remedy, all others are the control, so that a seed and one number say which pods are treated, however many there are. Pods
// that were created after the draw are never treated before the next one, and no draw takes the remedy from a pod that has it: those
// that came to stand among the treated are drawn first.
//
// A step treats at most its share of the pods. The share doubles from step to step, up to a half. A step begins on at most
// [Plan.Nodes] nodes that had no treated pod, takes never all remaining pods of a PodDisruptionBudget at once, and none while that
// allows no disruption. Each step is watched for [Plan.Watch]:
//
//   - The guard above its bound, at any time: taken back from all.
//   - At the end: of each pod, the logarithm of its quantile now less that before the first draw; the mean of the treated less that of
//     the control, with an interval of 95 % by Student's t, in which a pod counts as one ([Compare]). Where all of the interval is
//     above 0 and the quantile is longer by a tenth: taken back. Else the next step begins.
//   - With half of the pods treated, the remedy must be better: all of the interval below 0. Then all other pods get it, watched in the
//     same way, and it is kept; pods that are made during that watch do not delay it. If it is not shown to be better, it is taken back.
//   - What is known of less than half of the pods of a side decides only when two watches are over.
//   - Where too few pods are left that were there before the first draw, others are drawn.
//   - What cannot be measured within two watches is taken back. So is what nobody judged until [State.Until], which agents know too.
//
// Whether it is better is looked at once, so that a remedy that changes nothing is kept in 2.5 % of all cases. After it was taken
// back, nothing is tried for [Cooldown], and then another order is drawn.
//
// # Worked example
//
// 40 pods, a share of 10 %, a watch of 15 minutes: 4 pods, then 8, 16 and 20. Each pod's p99 varies by 20 % from one quarter of an
// hour to the next. With 20 pods on each side the difference is known to within 13 %, so that a remedy that takes a fifth off is
// most likely shown to be better 75 minutes after the policy was made; one that doubles p99 is taken back from 4 pods after its
// first watch.
//
// # Limits
//
// A pod is treated where its node's agent may apply its rule: whether the agent finds a remedy for it is its own decision. So the
// difference is that of being allowed the remedy, and smaller than the remedy's own. Pods of one node share what happens to the
// node, which the interval does not know. What treated pods do to the control, such as load that moves to them, is not seen. Fewer
// than [LeastPods] pods tell nothing. A pod that was made in the second of the youngest pod of a draw, and was not seen yet,
// may count as drawn.
//
// # Sources
//
// J. Neyman, "On the application of probability theory to agricultural experiments" (1923; Statistical Science 5, 1990), for the
// difference of means in a drawn experiment. D. Card, A. Krueger, "Minimum wages and employment", American Economic Review 84(4),
// 1994, for the difference of differences. R. Kohavi, D. Tang, Y. Xu, "Trustworthy Online Controlled Experiments" (2020), chapters
// 12, 15 and 18, for ramping, guards and the unit of analysis.
package canary
