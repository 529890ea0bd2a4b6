package nginx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const howToInstall = "install it (Debian: apt-get install nginx libnginx-mod-http-lua), or give the path of its program"

// installed is the nginx of this machine.
type installed struct {
	binary  string
	version [3]int
	modules string // folder
}

var (
	versionLine = regexp.MustCompile(`nginx version: [^/]+/(\d+)\.(\d+)\.(\d+)`)
	modulesPath = regexp.MustCompile(`--modules-path=(\S+)`)
)

// find finds nginx, and checks that it can do what the gateway needs.
func find(o Options) (found installed, err error) {
	if found.binary = o.Binary; found.binary == "" {
		if found.binary, err = exec.LookPath("nginx"); err != nil {
			found.binary = "/usr/sbin/nginx" // often not in the path
		}
	}
	out, err := exec.Command(found.binary, "-V").CombinedOutput()
	if err != nil {
		return found, fmt.Errorf("nginx does not run: %w: %s", err, howToInstall)
	}
	v := versionLine.FindSubmatch(out)
	if v == nil {
		return found, fmt.Errorf("%s -V says no version of nginx: %s", found.binary, howToInstall)
	}
	for i := range found.version {
		found.version[i], _ = strconv.Atoi(string(v[i+1]))
	}
	if !found.since(1, 19, 5) {
		return found, fmt.Errorf("%s is nginx %s.%s.%s: the gateway needs 1.19.5 or newer", found.binary, v[1], v[2], v[3])
	}
	if found.modules = o.Modules; found.modules == "" {
		if m := modulesPath.FindSubmatch(out); m != nil {
			found.modules = string(m[1])
		}
	}
	return found, nil
}

// since reports whether nginx has this version, or a newer one.
func (i installed) since(major, minor, patch int) bool {
	v := i.version
	return v[0] > major || v[0] == major && (v[1] > minor || v[1] == minor && v[2] >= patch)
}

// lua returns the modules to load for Lua: none if it is built in, as in OpenResty. It tries them,
// since the module without its library is of no use.
func (i installed) lua(dir string) (modules []string, err error) {
	if err = i.tryLua(dir, nil); err == nil {
		return nil, nil
	}
	for _, name := range []string{"ndk_http_module.so", "ngx_http_lua_module.so"} {
		if path := filepath.Join(i.modules, name); exists(path) {
			modules = append(modules, path)
		}
	}
	if len(modules) == 0 {
		return nil, errors.New("its module for Lua is not installed (Debian: libnginx-mod-http-lua)")
	}
	return modules, i.tryLua(dir, modules)
}

// tryLua starts an nginx that ends at once.
func (i installed) tryLua(dir string, modules []string) error {
	var w writer
	for _, m := range modules {
		w.line("load_module %s;", fixed(m))
	}
	w.line("pid %s;", fixed(dir+"/temp/try.pid"))
	w.line("daemon off;")
	w.line("master_process off;")
	w.line("events {}")
	w.block("http", func() {
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			w.line("%s_temp_path %s;", kind, fixed(dir+"/temp/"+kind))
		}
		w.line("access_log off;")
		w.line("lua_shared_dict try 1m;")
		w.line(`init_by_lua_block { os.exit(pcall(require, "ngx.balancer") and 0 or 3) }`)
	})
	path := dir + "/temp/try.conf"
	if err := write(path, []byte(w.text())); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, i.binary, "-e", "stderr", "-c", path).CombinedOutput(); err != nil {
		return fmt.Errorf("its module for Lua does not work: %w: %s", err, clean(string(out)))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// workersUser returns who workers run as, if the master runs as root: nobody.
func workersUser() (string, error) {
	if os.Getuid() != 0 {
		return "", nil
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return "", fmt.Errorf("find the user of nginx' workers: %w: run the gateway as another user than root", err)
	}
	group, err := user.LookupGroupId(who.Gid)
	if err != nil {
		return "", fmt.Errorf("find the group of nginx' workers: %w: run the gateway as another user than root", err)
	}
	return who.Username + " " + group.Name, nil
}

// hasIPv6 reports whether one can listen at IPv6 addresses here.
func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		l.Close()
	}
	return err == nil
}
