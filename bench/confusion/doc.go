// Package confusion scores the diagnosis against experiments: which cause did it name first, and which would have helped
// most to remove?
//
// # Problem
//
// A test that provokes one cause shows that the diagnosis knows it. Real containers have several at once, and nobody
// labels them.
//
// # Rule
//
// A mix of ingredients runs once with all of them, and once without each. Its harm is stopped time plus waiting, in
// seconds. The truth is the ingredient whose removal lowers the harm most. A mix is scored only where the answer is
// clear: the best removal helps at least [Lead] times as much as the second, by at least [LeastHarm] of the window, and
// in no run did the hypervisor or strangers take more than [MostForeign] of the time. The others are listed, with the
// reason.
//
// # Example
//
//	with all   without pool   without neighbours    truth
//	3.1 s      0.4 s (-2.7)   2.9 s (-0.2)          pool, by 13 times
//	3.1 s      2.0 s (-1.1)   2.2 s (-0.9)          none: a lead of 1.2
//
// # Limits
//
// Waiting counts every thread, as the container has it: an ingredient with many threads that wait for each other has
// much of it. Each run is one sample; a removal that helps by less than the runs differ anyhow is noise, which the lead
// keeps out mostly.
package confusion
