// Package connection is a client's way to its API server: [Connect] makes HTTP and REST clients of
// a configuration, and a [Link] exchanges one connection for another while requests are under way.
// Round trippers bound answers, follow redirects within the server only, tell observers of
// requests, and keep what a server sent out of errors. This package knows what was asked of which
// address. Package wire knows what the answers say.
package connection
