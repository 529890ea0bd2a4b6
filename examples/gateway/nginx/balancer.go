package nginx

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// balancer chooses endpoints. See the package's comment.
//
//go:embed balancer.lua
var balancer []byte

// balancerFile is the name of the balancer's file. It changes with the balancer, and so does the
// configuration.
func balancerFile() string {
	sum := sha256.Sum256(balancer)
	return "balancer-" + hex.EncodeToString(sum[:4]) + ".lua"
}

// lua loads the balancer.
func (r *renderer) lua(w *writer, hash string) {
	if !r.options.Lua {
		w.line("geo $hash { default %q; }", hash)
		return
	}
	w.line("lua_shared_dict endpoints 64m;")
	w.block("init_by_lua_block", func() {
		w.line("gateway = dofile(%s)", luaText(r.options.Dir+"/"+balancerFile()))
		w.line("gateway.start(%s, %q)", luaText(r.options.Dir+"/endpoints"), hash)
	})
}

// luaText quotes a text for Lua.
func luaText(s string) string {
	return `"` + bytewise(s, func(b byte) string {
		if strings.IndexByte("/-_.", b) >= 0 {
			return string([]byte{b})
		}
		return fmt.Sprintf(`\%03d`, b)
	}) + `"`
}

// upstreams writes where endpoints come from: from the balancer, or from the configuration.
func (r *renderer) upstreams(w *writer) {
	keep := r.config.Settings.KeepConnections
	ids := r.used()
	if r.options.Lua {
		w.block("upstream endpoints", func() {
			w.line("server 0.0.0.1; # the balancer chooses another one")
			w.line("balancer_by_lua_block { gateway.balance() }")
			if keep > 0 && len(ids) > 0 {
				w.line("keepalive %d;", min(keep*len(ids), 65536))
			}
		})
		return
	}
	for _, id := range ids {
		endpoints := r.endpoints(id)
		if len(endpoints) == 0 {
			continue
		}
		w.line("# %s", clean(id))
		w.block("upstream "+staticName(id), func() {
			for _, e := range endpoints {
				w.line("server %s;", e)
			}
			if keep > 0 {
				w.line("keepalive %d;", keep)
			}
		})
	}
}

// used returns the upstreams that rules name, sorted.
func (r *renderer) used() []string {
	used := map[string]bool{}
	for _, s := range r.config.Servers {
		for _, l := range s.Locations {
			for _, rule := range l.Rules {
				for _, b := range rule.Backends {
					used[b.Upstream] = b.Upstream != ""
				}
			}
		}
	}
	delete(used, "")
	return sortedKeys(used)
}

func (r *renderer) endpoints(id string) []string { return valid(r.config.Upstreams[id]) }

// valid returns the endpoints that are addresses.
func valid(endpoints []string) []string {
	var all []string
	for _, e := range endpoints {
		if address(e) {
			all = append(all, e)
		}
	}
	return all
}

func staticName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "u" + hex.EncodeToString(sum[:8])
}

// control writes the server that the gateway talks to.
func (r *renderer) control(w *writer) {
	w.block("server", func() {
		w.line("listen %s;", fixed("unix:"+r.options.Dir+"/"+controlSocket))
		w.line("access_log off;")
		if !r.options.Lua {
			w.line(`location = /version { return 200 "$hash static"; }`)
			return
		}
		w.line("client_max_body_size 0;")
		w.line("client_body_buffer_size 16m;")
		w.line("client_body_in_single_buffer on;")
		w.line("location = /version { content_by_lua_block { gateway.version() } }")
		w.line("location = /endpoints { content_by_lua_block { gateway.endpoints() } }")
	})
}

// controlSocket is where nginx takes endpoints, in the gateway's folder. The folder "control" is
// open to the user of the gateway alone, who may be that of nginx' master, too.
const controlSocket = "control/socket"
