// Package balance chooses which shard of a service gets a request, and marks
// shards dead: a client's part in how a service falls.
//
// # Problem
//
// A service has many equal shards, and their load is not equal: the practical
// limit of all is where the most loaded one breaks. Clients that find a shard
// failing stop sending to it, which gives it time, and send its load to the
// others, which may then fail as well. Whether one falling shard takes the others
// along depends on what clients do; simulated and real ones must do the same.
//
// # Rule
//
// A try goes to the next shard in turn, to the one with the fewest tries on their
// way, or to the one that the request's key belongs to, of which some have more.
// So many failed tries of a shard one after the other (refused, or not answered
// in time) mark it dead for a while: it gets nothing, and the others share its
// part as they share the rest. Then it gets its part again, and one more failed
// try marks it again, until one is answered. Who is marked while all others are
// dead makes no difference: a client has to ask somebody.
//
// # Worked example
//
// Three shards, skew 0.5: they have 44, 31 and 25 % of the requests. With the
// first one dead the others have 55 and 45 %: 1.8 times what they had.
//
// # Limits
//
// One client's view. Real ones are many, and do not all mark a shard in the same
// moment.
package balance
