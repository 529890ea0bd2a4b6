package source

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/internal/client/dial"
	"github.com/kates-go/kates/internal/client/kubeconfig"
)

// Allow says what a configuration that comes from a cluster may do besides naming a server and
// credentials. The values may be joined: AllowExec|AllowProxy. The zero value allows nothing. See
// the package documentation for why.
type Allow uint8

// What may be allowed.
const (
	// AllowExec: it may run programs of this machine that get credentials (exec), and use
	// client-go's own plugins (auth-provider).
	AllowExec Allow = 1 << iota
	// AllowFiles: it may read files of this machine (tokenFile, client-certificate, client-key,
	// certificate-authority). What they hold is sent to the server that it names.
	AllowFiles
	// AllowProxy: it may name a proxy.
	AllowProxy
	// AllowInsecure: it may switch off the check of the server's certificate.
	AllowInsecure
	// AllowHome: a Secret of Argo CD's form may stand for the cluster that it is in
	// (https://kubernetes.default.svc without credentials), which is reached by the home client.
	AllowHome

	allowEverything = AllowExec | AllowFiles | AllowProxy | AllowInsecure | AllowHome
)

// terms are what a configuration may do here.
type terms struct {
	Allow
	hosts    *dial.Rules
	anywhere bool // the hosts do not matter
}

// ownTerms are those of this machine's own files.
var ownTerms = terms{Allow: allowEverything, anywhere: true}

// newTerms returns the terms of configurations that come from a cluster.
func newTerms(allow Allow, hosts []string) (terms, error) {
	rules, err := dial.Parse(hosts)
	if err != nil {
		return terms{}, fmt.Errorf("the option %s: %w", dial.Option, err)
	}
	return terms{Allow: allow, hosts: rules}, nil
}

// guard has a configuration dial only where the terms allow it. One that brings its own way to
// dial keeps that, and only the address that it names is checked.
func (t terms) guard(config *rest.Config) error {
	if t.anywhere {
		return nil
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return errors.New("the server is no address")
	}
	rules := cmp.Or(t.hosts, new(dial.Rules))
	if err := rules.CheckHost(server.Hostname()); err != nil {
		return fmt.Errorf("the server %w", err)
	}
	if config.Transport == nil && config.Dial == nil {
		guard := &dial.Guard{Rules: rules, Host: server.Hostname()}
		if config.Proxy == nil { // then the transport takes that of the environment
			proxy, err := http.ProxyFromEnvironment(&http.Request{URL: server})
			if err != nil {
				return errors.New("the environment of this program names a proxy that is no address")
			}
			if proxy != nil {
				guard.Proxy = dial.Address(proxy)
			}
		}
		config.Dial = guard.DialContext
	}
	return nil
}

// checkProxy checks the proxy that a configuration names, and the server behind it.
func (t terms) checkProxy(cluster *clientcmdapi.Cluster) error {
	proxy, err := url.Parse(cluster.ProxyURL)
	if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		return errors.New("the proxy-url is no address of a proxy")
	}
	server, _, err := rest.DefaultServerURL(cluster.Server, "", schema.GroupVersion{}, false)
	if t.anywhere || err != nil || t.Allow&AllowProxy == 0 { // it is refused as a whole
		return err
	}
	rules := cmp.Or(t.hosts, new(dial.Rules))
	if err := rules.CheckHost(proxy.Hostname()); err != nil {
		return fmt.Errorf("the proxy %w", err)
	}
	if err := rules.CheckBehindProxy(server.Hostname()); err != nil {
		return fmt.Errorf("the server %w", err)
	}
	return nil
}

// connection is how a cluster is reached.
type connection struct {
	config  *rest.Config
	version string
}

// parseKubeconfig parses the text of a kubeconfig. No error quotes it. file is where it is from,
// if it is a file: relative paths are relative to that.
func parseKubeconfig(text []byte, file string) (*clientcmdapi.Config, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the kubeconfig is empty")
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig does not parse%s", whereOf(text, err))
	}
	for _, c := range config.Clusters {
		c.LocationOfOrigin = file
	}
	for _, u := range config.AuthInfos {
		u.LocationOfOrigin = file
	}
	return config, clientcmd.ResolveLocalPaths(config)
}

var yamlLine = regexp.MustCompile(`\bline \d+\b`)

// whereOf returns where a text is wrong, and why, if that is known. The rest of the error may quote
// the text.
func whereOf(text []byte, err error) string {
	if misfit := kubeconfig.Misfit(text); misfit != "" {
		return ": " + misfit
	}
	if at := yamlLine.FindString(err.Error()); at != "" {
		return " (" + at + ")"
	}
	return ""
}

// connectionOf returns how the cluster of a context is reached. It reads files and runs programs
// only where that is allowed.
func connectionOf(config *clientcmdapi.Config, context string, terms terms) (connection, error) {
	if context == "" {
		return connection{}, errors.New("the kubeconfig has no current-context")
	}
	in := config.Contexts[context]
	if in == nil {
		return connection{}, errors.New("the kubeconfig does not have the context that it names")
	}
	cluster, user := config.Clusters[in.Cluster], config.AuthInfos[in.AuthInfo]
	switch {
	case cluster == nil:
		return connection{}, errors.New("the kubeconfig does not have the cluster that the context names")
	case user == nil && in.AuthInfo != "":
		return connection{}, errors.New("the kubeconfig does not have the user that the context names")
	case user == nil:
		user = clientcmdapi.NewAuthInfo()
	case !hasCredentials(user) && encrypted(cluster):
		// A half-written file looks so, and the server may take an anonymous request.
		return connection{}, errors.New("the user in the kubeconfig has no credentials")
	}
	return connect(cluster, user, terms)
}

// hasCredentials reports whether a user has anything to prove who it is.
func hasCredentials(u *clientcmdapi.AuthInfo) bool {
	return u.Token != "" || u.TokenFile != "" || u.Username != "" || u.Exec != nil || u.AuthProvider != nil ||
		u.ClientCertificate != "" || len(u.ClientCertificateData) > 0
}

// encrypted reports whether client-go reaches a cluster over TLS. A server that is a name alone
// is, if there is an authority for it.
func encrypted(c *clientcmdapi.Cluster) bool {
	return rest.IsConfigTransportTLS(rest.Config{Host: c.Server, TLSClientConfig: rest.TLSClientConfig{
		CAFile: c.CertificateAuthority, CAData: c.CertificateAuthorityData, Insecure: c.InsecureSkipTLSVerify,
	}})
}

// connect returns how a cluster is reached as a user.
func connect(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, terms terms) (c connection, err error) {
	if err := checkAddress("server", cluster.Server); err != nil {
		return c, err
	}
	if cluster.ProxyURL != "" {
		if err := terms.checkProxy(cluster); err != nil {
			return c, err
		}
	}
	if err := terms.check(cluster, user); err != nil {
		return c, err
	}
	if user.Exec != nil && terms.Allow != allowEverything { // it has no business with a terminal
		user = user.DeepCopy()
		user.Exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	}
	// Names are not part of the configuration, and are not in its errors.
	const name = "this"
	one := clientcmdapi.NewConfig()
	one.Clusters[name], one.AuthInfos[name] = cluster, user
	one.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	one.CurrentContext = name
	text, err := clientcmd.Write(*one)
	if err != nil {
		return c, errors.New("the kubeconfig cannot be written") // it was read, so it can
	}
	c.version = hash(text)
	c.config, err = clientcmd.NewNonInteractiveClientConfig(*one, name, nil, nil).ClientConfig()
	if err != nil {
		return c, fmt.Errorf("the kubeconfig makes no sense: %w", err)
	}
	if err := terms.guard(c.config); err != nil {
		return connection{}, err
	}
	return c, nil
}

// check returns an error that says what a configuration does that is not allowed.
func (a Allow) check(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	var refused []string
	for _, r := range []struct {
		allow Allow
		does  bool
		what  string
	}{
		{AllowExec, user.Exec != nil, "runs a program (exec): source.AllowExec allows it"},
		{AllowExec, user.AuthProvider != nil, "uses a plugin (auth-provider): source.AllowExec allows it"},
		{AllowFiles, user.TokenFile != "", "reads a file (tokenFile): source.AllowFiles allows it"},
		{AllowFiles, user.ClientCertificate != "", "reads a file (client-certificate): source.AllowFiles allows it"},
		{AllowFiles, user.ClientKey != "", "reads a file (client-key): source.AllowFiles allows it"},
		{AllowFiles, cluster.CertificateAuthority != "", "reads a file (certificate-authority): source.AllowFiles allows it"},
		{AllowProxy, cluster.ProxyURL != "", "names a proxy (proxy-url): source.AllowProxy allows it"},
		{AllowInsecure, cluster.InsecureSkipTLSVerify, "does not check the server's certificate (insecure-skip-tls-verify): source.AllowInsecure allows it"},
	} {
		if r.does && a&r.allow == 0 {
			refused = append(refused, r.what)
		}
	}
	if refused == nil {
		return nil
	}
	return fmt.Errorf("the configuration is refused: it %s", strings.Join(refused, "; it "))
}

// checkAddress checks the address of a server as client-go reads it: a URL, or else a host with or
// without a port, which is reached without TLS. So a URL with a slash too few would be a host that
// is called https. The error does not quote the address: it may have a password.
func checkAddress(what, address string) error {
	if address == "" {
		return fmt.Errorf("the kubeconfig has no %s", what)
	}
	u, _, err := rest.DefaultServerURL(address, "", schema.GroupVersion{}, false)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("the %s is no address", what)
	case u.User != nil:
		return fmt.Errorf("the %s has credentials in its address, where they would be shown", what)
	case strings.EqualFold(u.Hostname(), "https") || strings.EqualFold(u.Hostname(), "http"):
		return fmt.Errorf("the %s is no address: behind http: and https: belong two slashes", what)
	}
	return nil
}

// hash returns what tells texts apart, and nothing of what is in them.
func hash(texts ...[]byte) string {
	h := sha256.New()
	for _, t := range texts {
		one := sha256.Sum256(t)
		h.Write(one[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}
