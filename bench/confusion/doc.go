// Package confusion scores the diagnosis against experiments: did it name first the cause
// whose removal would have helped most?
//
// # Problem
//
// A test that provokes one cause shows that the diagnosis knows it. Real containers have
// several causes at once, without labels.
//
// # Rule
//
// A mix of ingredients runs once with all of them, and once without each. Its harm is
// stopped time plus waiting, in seconds. The truth is the ingredient whose removal lowers
// the harm most.
//
// A mix counts only where the answer is clear. The best removal must help at least [Lead]
// times as much as the second, and by at least [LeastHarm] of the window. In no run may
// the hypervisor or other programs take more than [provoke.MostForeign] of the time. The page lists
// the other mixes with the reason.
//
// # Worked example
//
//	with all   without pool   without neighbours    truth
//	3.1 s      0.4 s (-2.7)   2.9 s (-0.2)          pool, by 13 times
//	3.1 s      2.0 s (-1.1)   2.2 s (-0.9)          none: a lead of 1.2
//
// # Limits
//
// Waiting counts every thread of the container: an ingredient with many threads that wait
// for each other has much of it. Each run is one sample. A removal that helps less than
// the runs differ is noise, and the lead excludes most of it.
package confusion
