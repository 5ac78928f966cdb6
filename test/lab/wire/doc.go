// Package wire has the messages between guest and host: the plan that enters with the initramfs, and the frames that
// return over virtio-serial.
//
// Problem: a serial console mixes the kernel's messages with those of the command and has no exit status. A tar at the
// end is lost if the guest hangs. Output should arrive as it is written, with its stream and its step.
//
// Rule: the guest writes frames, one after another. A frame is a line
//
//	<kind> <step> <bytes>\n
//
// and then that many bytes of payload. Example: step 0 prints "hi" and ends well:
//
//	stdout 0 3\nhi\nexit 0 10\n{"code":0}
//
// Limits: a payload has at most 64 KiB, a header at most 64 bytes. The reader checks both, because a guest that sends
// data may have crashed.
package wire
