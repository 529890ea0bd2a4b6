package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kates-go/kates/examples/gateway/demo"
	"github.com/kates-go/kates/examples/gateway/translate"
	"github.com/kates-go/kates/kates"
)

// settings are what the flags say.
type settings struct {
	cluster        kates.ClientConfig
	own            string // the gateway's own namespace
	clusters       string // others: a directory, or contexts
	demoClusters   int
	namespaces     []string // nil: all
	settings       types.NamespacedName
	published      []string
	publishService types.NamespacedName
	zone           string
	loopback       bool
	listen         string
	long           time.Duration
	nginxSettings
}

// nginxSettings are what the flags say about nginx.
type nginxSettings struct {
	address   netip.Addr // the zero value: all
	ports     map[int]int
	addresses []netip.Addr // of Gateways
	dir       string
	binary    string
	external  bool
}

// demo reports whether there is no cluster to serve.
func (s *settings) demo() bool {
	return s.cluster.Kubeconfig == "" && s.cluster.Context == "" && !kates.InCluster()
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{nginxSettings: nginxSettings{ports: map[int]int{80: 8080, 443: 8443}}}
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.cluster.Kubeconfig, "kubeconfig", "", "serve the cluster of this kubeconfig")
	flags.StringVar(&s.cluster.Context, "context", "", "serve the cluster of this context of the kubeconfig")
	flags.StringVar(&s.own, "namespace", "gateway", "the gateway's own namespace, in which its Lease is")
	flags.Func("namespaces", "serve objects of these namespaces alone, with commas (default: all)", s.readNamespaces)
	flags.Func("settings", "the ConfigMap of settings, as namespace/name (default: there are none)", name(&s.settings))
	flags.StringVar(&s.clusters, "clusters", "", "serve the endpoints of other clusters, too: a folder (with a /) of kubeconfigs, or contexts with commas")
	flags.IntVar(&s.demoClusters, "demo-clusters", 1, "how many other clusters the demonstration has")
	flags.Func("ports", "where to listen for the ports that objects name (default 80:8080,443:8443; those that are not named: the same)", s.readPorts)
	flags.Func("address", "listen at this IP address (default: at all; the demonstration at 127.0.0.1)", s.readAddress)
	flags.Func("addresses", "IP addresses of this machine for Gateways, one each, with commas (default: all share all)", s.readAddresses)
	flags.Func("publish-address", "what statuses say, with commas: IP addresses or names", s.readPublished)
	flags.Func("publish-service", "a Service, as namespace/name, whose addresses statuses say", name(&s.publishService))
	flags.StringVar(&s.zone, "zone", "", "the zone of this replica: endpoints are chosen by their hints")
	flags.BoolVar(&s.loopback, "endpoints-on-loopback", false, "for tests: reach an endpoint 10.a.b.c at 127.a.b.c")
	flags.StringVar(&s.dir, "dir", "", "the folder of nginx' files; with a folder that stays, nginx outlives a crash of the gateway (default: a temporary one)")
	flags.StringVar(&s.binary, "nginx", "", "the path of the program nginx (default: the one that is installed)")
	flags.BoolVar(&s.external, "nginx-external", false, "nginx is started by somebody else, with -c DIR/nginx.conf")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8099", "serve /healthz, /readyz, /metrics and /debug/kates/ at this address (empty: not at all)")
	flags.DurationVar(&s.long, "for", 0, "end after so long (0: at an interrupt)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errUsage
	}
	if s.demo() && !s.address.IsValid() {
		s.address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if problem := s.check(flags.Args()); problem != "" {
		fmt.Fprintln(stderr, "gateway:", problem)
		return nil, errUsage
	}
	return s, nil
}

// check says what is wrong with the flags together.
func (s *settings) check(rest []string) string {
	switch {
	case len(rest) > 0:
		return fmt.Sprintf("unexpected argument %q", rest[0])
	case s.long < 0:
		return fmt.Sprintf("-for %s: there is no such time", s.long)
	case s.demoClusters < 0 || s.demoClusters > demo.MostClusters:
		return fmt.Sprintf("-demo-clusters %d: there can be 0 to %d", s.demoClusters, demo.MostClusters)
	case slices.Contains(s.addresses, s.address):
		return fmt.Sprintf("-address %s: -addresses has it, too", s.address)
	case s.external && s.dir == "":
		return "-nginx-external needs -dir, the folder in which the other nginx finds its configuration"
	case s.demo() && s.clusters != "":
		return "-clusters needs -kubeconfig or -context: the clusters of the demonstration have no contexts"
	case s.demo() && s.namespaces != nil:
		return "-namespaces needs -kubeconfig or -context: the demonstration has all its namespaces"
	}
	return ""
}

func (s *settings) readNamespaces(text string) error {
	s.namespaces = strings.Split(text, ",")
	for _, namespace := range s.namespaces {
		if wrong := validation.IsDNS1123Label(namespace); wrong != nil {
			return fmt.Errorf("namespace %q: %s", namespace, wrong[0])
		}
	}
	return nil
}

func (s *settings) readPorts(text string) error {
	s.ports = map[int]int{}
	if text == "" {
		return nil
	}
	for _, pair := range strings.Split(text, ",") {
		from, to, _ := strings.Cut(pair, ":")
		named, err := strconv.ParseUint(from, 10, 16)
		at, wrong := strconv.ParseUint(to, 10, 16)
		if errors.Join(err, wrong) != nil || named == 0 || at == 0 {
			return fmt.Errorf("%q is no pair of ports like 80:8080", pair)
		}
		s.ports[int(named)] = int(at)
	}
	return nil
}

func (s *settings) readAddress(text string) (err error) {
	if s.address, err = netip.ParseAddr(text); err != nil {
		return fmt.Errorf("%q is no IP address", text)
	}
	return nil
}

func (s *settings) readAddresses(text string) error {
	for _, one := range strings.Split(text, ",") {
		address, err := netip.ParseAddr(one)
		if err != nil {
			return fmt.Errorf("%q is no IP address", one)
		}
		s.addresses = append(s.addresses, address)
	}
	return nil
}

func (s *settings) readPublished(text string) error {
	for _, one := range strings.Split(text, ",") {
		if _, err := netip.ParseAddr(one); err != nil && validation.IsDNS1123Subdomain(one) != nil {
			return fmt.Errorf("%q is no IP address and no name", one)
		}
		s.published = append(s.published, one)
	}
	return nil
}

// name reads namespace/name.
func name(into *types.NamespacedName) func(string) error {
	return func(text string) error {
		namespace, name, found := strings.Cut(text, "/")
		if !found || validation.IsDNS1123Label(namespace) != nil || validation.IsDNS1123Subdomain(name) != nil {
			return fmt.Errorf("%q is not namespace/name", text)
		}
		*into = types.NamespacedName{Namespace: namespace, Name: name}
		return nil
	}
}

// queries are those of the translation, in the namespaces that the flags name.
func (s *settings) queries() []kates.Query {
	queries := translate.Queries(s.settings.Namespace, s.settings.Name)
	for i := range queries {
		switch q := &queries[i]; q.Name {
		case "Ingresses", "Gateways", "Routes", "Grants", "Slices":
			q.Namespaces = s.namespaces
		case "Services":
			q.Namespaces = s.namespaces
			if s.publishService.Name == "" {
				continue
			}
			q.Transform = kates.Transform{} // it drops the status
			if q.Namespaces != nil && !slices.Contains(q.Namespaces, s.publishService.Namespace) {
				q.Namespaces = append(slices.Clone(q.Namespaces), s.publishService.Namespace)
			}
		}
	}
	return queries
}

// translate has what the translation needs to know beside the snapshot.
func (s *settings) translate() translate.Options {
	o := translate.Options{
		Address: s.address, Port: s.port, Addresses: s.addresses, Published: s.published, Zone: s.zone, Machine: s.machine(),
	}
	if s.loopback || s.demo() {
		o.Endpoint = demo.Loopback
	}
	if o.Published == nil && s.demo() {
		o.Published = []string{s.address.String()}
	}
	return o
}

// machine is what objects get nothing of. Addresses that cannot be asked for are as good as none:
// then endpoints at them are found out by the mark of their requests alone.
func (s *settings) machine() (m translate.Machine) {
	if _, port, err := net.SplitHostPort(s.listen); err == nil {
		if number, err := net.LookupPort("tcp", port); err == nil && number > 0 {
			m.Ports = append(m.Ports, number)
		}
	}
	m.Addresses = append(m.Addresses, s.addresses...)
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			m.Addresses = append(m.Addresses, prefix.Addr().Unmap())
		}
	}
	return m
}

// port is where to listen for a port that objects name.
func (s *settings) port(named int) int { return cmp.Or(s.ports[named], named) }
