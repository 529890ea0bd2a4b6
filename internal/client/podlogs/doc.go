// Package podlogs follows the log of one container across cut connections, silent connections and
// restarts of the container, and gives each line once.
//
// A server resumes a log at a time, and with the resolution of a second. So a log that is resumed
// begins with lines that were given already. [given] remembers the lines of the last seconds, and
// [replay] recognises them, also where several lines have one time.
//
// A connection that ends does not tell whether the log has ended: the API server passes the log
// on, and ends its answer in good order if its own connection to the kubelet breaks. A log has
// ended if the pod's status says that the container has, and a stream that is opened after that
// brings nothing new.
//
// Reader is the type to start from. The package knows nothing of clients.
package podlogs
