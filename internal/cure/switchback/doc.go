// Package switchback decides by turns that are spread over hours which remedy a container keeps, and whether it still helps.
//
// # Problem
//
// A trial of two minutes, with a person who waits, sees the load of two minutes. An agent has the night: it can give each remedy a
// minute here and there, so that each meets the same hours, and no request is slow for long. But someone who looks at a result again and
// again, and stops when it looks good, finds what is not there. And a process that lives for hours is killed, upgraded and moved.
//
// # Rule
//
// Time is cut into blocks, and blocks into rounds. In a round each variant that is still in has one block, and so has leaving the
// container as it is, in an order that is drawn for the round ([Plan.Order]). What a block shows is one figure: the judged quantile of
// its requests, as a logarithm. The unit is the block, not the request. A variant's pair of a round ([State.Pairs]) is its figure minus
// that of leaving it.
//
// If the variant changes nothing, swapping the two blocks of a pair changes nothing either, and the order was drawn: a pair is as
// likely to be d as -d. Bets on the sign, each a part of a stake by a rule that knows earlier pairs only, then win nothing in the
// long run. The [Evidence] that a variant is better is what a stake of 1 has become; that it is above 1/a at any time at all has a
// probability of a at most (Ville's inequality). One may therefore look after each block, and stop at any time. Variants share a.
//
// A variant is out once its requests are slow in two blocks ([State.Slow]), and when there is as much evidence that it is worse. After
// each four rounds the half of the remedies that took longer is out too, so that the others have its time (sequential halving). That
// makes no remedy look better than it is: the evidence of each is of its own pairs, and all share a from the beginning. The lowest wins
// as soon as its own evidence is enough; at the bound of time the lowest of those with enough evidence wins, or none.
//
// What won is left alone in one block of twenty ([Plan.Holdback]). Their pairs are evidence on whether it still brings half of what was
// measured ([Kept.Still]). Where there is enough that it does not, it is undone.
//
// # Worked example
//
// Pairs of -0.22, a fifth off, with a spread of 0.35 by chance: bets settle at some 0.6 of the stake, each pair multiplies it by 1.17,
// and after 28 pairs it is above 80, enough for four variants at 5 %.
//
// # Limits
//
// What a block leaves behind for the next, such as a queue or a cache, counts for the next one; the caller waits before it measures.
// The load may change within a round: it is then noise. A quantile of few requests is left out, and its round has no pair.
//
// # Sources
//
// A. Ramdas, P. Grünwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38(4),
// 2023 (stakes as evidence, Ville's inequality); I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting",
// JRSS B 86(1), 2024 (how much to bet); I. Bojinov, D. Simchi-Levi, J. Zhao, "Design and analysis of switchback experiments",
// Management Science 69(7), 2023; Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013
// (sequential halving).
package switchback
