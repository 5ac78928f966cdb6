// Package balance chooses the shard of a service that gets a request, and marks shards dead. It is a client's
// part in the failure of a service.
//
// # Problem
//
// A service has many equal shards with unequal load. The shard with the most load breaks first, and sets the
// practical limit of all. Clients stop sending to a failing shard. That gives it time, but sends its load to
// the others, which may then fail as well. Whether one failing shard takes the others along depends on the
// clients. Simulated and real clients must therefore behave alike.
//
// # Rule
//
// A try goes to the next shard in turn, to the shard with the fewest outstanding tries, or to the shard of
// the request's key. Some shards have more keys than others. A number of failed tries in a row (refused, or
// not answered in time) marks a shard dead for a while. A dead shard gets nothing, and the others share its
// part in proportion. Then it gets its part again, and one more failed try marks it again, until it answers
// one. If all shards are dead, the marks have no effect, because a client has to ask one of them.
//
// # Worked example
//
// Three shards, skew 0.5: they have 44, 31 and 25 % of the requests. With the first one dead the others have
// 55 and 45 %: 1.8 times their former load.
//
// # Limits
//
// This is one client's view. Real clients are many, and do not all mark a shard at the same moment.
package balance
