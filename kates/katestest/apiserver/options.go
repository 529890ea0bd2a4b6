package apiserver

import (
	"net/http"

	"k8s.io/client-go/transport"
)

// Option says how a cluster is to be. Options add up: each may be given several times, in any
// order.
type Option func(*settings)

// settings is what all options of a cluster say.
type settings struct {
	flags       []string
	definitions []string
	wrap        transport.WrapperFunc
}

// WithFlags gives the API server flags, such as "watch-cache=false", in addition to those that it
// needs. A flag takes the place of a flag of that name that the server has by itself here. Of a
// flag that is given several times all values are passed on.
func WithFlags(flags ...string) Option {
	return func(s *settings) { s.flags = append(s.flags, flags...) }
}

// WithCRDs installs the CustomResourceDefinitions in files and folders, as [Cluster.InstallCRDs]
// does. In a test, paths are relative to the folder of its package.
func WithCRDs(paths ...string) Option {
	return func(s *settings) { s.definitions = append(s.definitions, paths...) }
}

// WithTransport wraps the transport of all configurations that the cluster hands out: Config, and
// those of [Cluster.AddUser].
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(s *settings) { s.wrap = transport.Wrappers(s.wrap, wrap) }
}
