// Package nginx serves a configuration with nginx: it renders it, has nginx check it, activates it
// without losing a request, and says which object is at fault if nginx refuses it. Start with
// [Config], [Open] and [Nginx.Apply]. Of Kubernetes the package
// knows the names of objects, to say which one is at fault.
//
// # Endpoints without a reload
//
// Endpoints change often, and a reload is dear: it makes new workers, and the old ones stay until
// their last request ends. So endpoints are not in the configuration. Lua chooses one for each
// request (balancer.lua, 130 lines) from memory that all workers share and that outlives reloads.
// The gateway sends the upstreams that have changed to a socket in its folder.
//
// That is OpenResty's module for Lua, with its library lua-resty-core. It is the way that is well
// kept and free: Debian has both, with security support, and ingress-nginx has used it for years.
// nginx' own ways are others: "resolve" in an upstream is free since 1.27.3, and takes endpoints
// from DNS, with SRV records for ports and as late as their time to live allows; the API that
// changes them is a part of NGINX Plus, which is sold.
//
// Where the module is missing, the configuration has the endpoints, and a change of them is a
// reload. The gateway says so in its log, once.
//
// # A process of its own
//
// nginx outlives a gateway that is killed, and the next gateway adopts it: if the configuration is
// the same, nothing happens. If nginx' master is killed, Apply starts it again; Alive says when.
//
// # Attackers
//
// Whoever may write one object must harm no other. Texts of objects are quoted (quote.go), regular
// expressions are bounded, and each line of the configuration knows its object, so that nginx'
// message names the one at fault (blame.go). Of a namespace with many at fault a few are looked
// for, so that others need not wait: [Outcome] says that the rest is held, and [Nginx.Try] finds
// it. An address at which nginx cannot listen is found before nginx is reloaded (taken.go). The
// tests in attack_test.go try to break that.
//
// # What is not here
//
// Of a header that comes several times, nginx before 1.23 sees the first one only, in conditions
// and where a value is added. Weights are exact to a hundredth of a percent. A client that reuses
// a connection in the moment in which a reload closes it has to send the request again: HTTP
// clients do so by themselves, except for requests that are not idempotent.
package nginx
