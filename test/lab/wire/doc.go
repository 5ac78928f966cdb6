// Package wire is what guest and host say to each other: the plan that goes in
// with the initramfs, and the frames that come back over virtio-serial.
//
// Problem: a serial console mixes the kernel's messages with those of the
// command and knows no exit status; a tar at the end is lost if the guest
// hangs. Output should arrive as it is written, with its stream and its step.
//
// Rule: the guest writes frames, one after another. A frame is a line
//
//	<kind> <step> <bytes>\n
//
// and then as many bytes of payload. Example: step 0 printing "hi" and ending
// well is
//
//	stdout 0 3\nhi\nexit 0 10\n{"code":0}
//
// Limits: a payload has at most maxPayload bytes, a header at most 64, and
// both are checked by the reader: what a guest sends is data from a machine
// that may have crashed.
package wire
