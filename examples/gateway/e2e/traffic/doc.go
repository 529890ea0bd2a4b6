// Package traffic counts every request while things change and fail: endpoints, Ingresses,
// certificates, the leader, the API server, the gateway itself. The gateway is the program as a
// process, so that SIGKILL is real. nginx and the API server are real, too. There are no nodes:
// a pod 10.a.b.c is a server of the test at 127.a.b.c.
package traffic
