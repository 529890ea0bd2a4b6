package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// SecretForm is what the Secrets of clusters look like.
type SecretForm string

// The forms of Secrets.
const (
	// Kubeconfigs: a Secret has a kubeconfig under a key. See [SecretOptions.Key].
	Kubeconfigs SecretForm = ""
	// ClusterAPI: the Secrets that Cluster API writes for its clusters. They are of type
	// cluster.x-k8s.io/secret, have the label cluster.x-k8s.io/cluster-name, are named
	// CLUSTER-kubeconfig, and have the kubeconfig under the key value. Other Secrets of a cluster
	// (CLUSTER-ca) are none. See
	// https://cluster-api.sigs.k8s.io/developer/providers/contracts/control-plane
	ClusterAPI SecretForm = "ClusterAPI"
	// ArgoCD: the Secrets by which Argo CD is told its clusters. They have the label
	// argocd.argoproj.io/secret-type: cluster, and the keys name, server and config. See
	// https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/#clusters
	ArgoCD SecretForm = "ArgoCD"
)

const (
	kubeconfigLabel  = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	clusterAPILabel  = "cluster.x-k8s.io/cluster-name"
	clusterAPIType   = "cluster.x-k8s.io/secret"
	clusterAPISuffix = "-kubeconfig"
	argoLabel        = "argocd.argoproj.io/secret-type"
)

// SecretOptions say which Secrets are clusters.
type SecretOptions struct {
	// Form of the Secrets. Default: Kubeconfigs.
	Form SecretForm
	// Namespaces of the Secrets. Default: all; for Argo CD the namespace argocd. Argo CD itself
	// reads its own namespace alone, and whoever may write a Secret there names clusters.
	Namespaces []string
	// LabelSelector narrows further what the form selects. For Kubeconfigs it is all that selects.
	// Its default there is that of multicluster-runtime,
	// sigs.k8s.io/multicluster-runtime-kubeconfig=true.
	LabelSelector string
	// Key of the kubeconfig in the Secrets' data, for the form Kubeconfigs. Default: kubeconfig.
	Key string
	// Name, if not nil, names the cluster of a Secret. A Secret for which it returns "" is none.
	// It sees the Secret's metadata, type and the data that the form uses, and must not write to
	// it.
	//
	// Default: "namespace/name" of the Secret; for Cluster API "namespace/name" of the cluster;
	// for Argo CD the name that the Secret has in its data, or else its server.
	Name func(*kates.Secret) string
	// Allow says what the configurations may do on this machine. Default: nothing.
	Allow Allow
	// Hosts are the host names, addresses and networks (CIDR) that the configurations may lead to,
	// and their proxies. *.example.com stands for all names below example.com. If there are any,
	// nothing else is allowed. Default: all but loopback, link-local, unspecified, multicast and
	// broadcast addresses, and those of cloud metadata. Such an address is allowed only by an entry
	// for itself, or for a network of nothing else: 127.0.0.0/8, ::1. See the package documentation.
	Hosts []string
}

// Secrets is a source of Secrets in a home cluster: each that the options select is a cluster. The
// labels of the Secret are those of the cluster.
//
// The needed rights are list and watch of Secrets, in the namespaces or in all. Only what
// the form uses of a Secret's data is held.
func Secrets(home *kates.Client, options SecretOptions) fleet.Source {
	s, err := newSecrets(home, options)
	if err != nil {
		return broken{"Secrets", err}
	}
	return s.source()
}

type secretSnapshot struct{ Secrets []*kates.Secret }

// secrets makes members of Secrets.
type secrets struct {
	SecretOptions
	home   *kates.Client
	keys   []string // of the data that is held
	member func(*secrets, *kates.Secret) fleet.Member
	query  kates.Query
	names  names
	terms  terms
}

func newSecrets(client *kates.Client, o SecretOptions) (*secrets, error) {
	if client == nil {
		return nil, errNoHome
	}
	s := &secrets{SecretOptions: o, home: client, query: kates.Query{Name: "Secrets"}}
	var err error
	if s.terms, err = newTerms(o.Allow, o.Hosts); err != nil {
		return nil, err
	}
	selectors := []string{}
	if o.LabelSelector != "" {
		selectors = append(selectors, o.LabelSelector)
	}
	if o.Key != "" && o.Form != Kubeconfigs {
		return nil, fmt.Errorf("a Key is for the form Kubeconfigs: %s has its own", o.Form)
	}
	switch o.Form {
	case Kubeconfigs:
		if s.Key == "" {
			s.Key = "kubeconfig"
		}
		if o.LabelSelector == "" {
			selectors = append(selectors, kubeconfigLabel+"=true")
		}
		s.keys, s.member = []string{s.Key}, (*secrets).plain
	case ClusterAPI:
		s.Key = "value"
		selectors = append(selectors, clusterAPILabel)
		s.query.FieldSelector = "type=" + clusterAPIType
		s.keys, s.member = []string{s.Key}, (*secrets).plain
	case ArgoCD:
		selectors = append(selectors, argoLabel+"=cluster")
		s.keys, s.member = argoKeys, (*secrets).argo
		if len(o.Namespaces) == 0 {
			s.Namespaces = []string{argoNamespace}
		}
	default:
		return nil, fmt.Errorf("there is no form %q of Secrets", o.Form)
	}
	s.query.LabelSelector = strings.Join(selectors, ",")
	s.query.Transform = kates.TransformOf(s.strip)
	s.query = narrow(s.query, s.Namespaces)
	return s, nil
}

func (s *secrets) source() fleet.Source {
	what := "Secrets"
	if s.Form != Kubeconfigs {
		what += " of " + string(s.Form)
	}
	return &home[secretSnapshot]{
		name: what, client: s.home, queries: []kates.Query{s.query},
		members: func(snap *secretSnapshot) []fleet.Member { return s.members(snap.Secrets) },
	}
}

// strip drops what the source does not need of a Secret: other data above all.
func (s *secrets) strip(secret *kates.Secret) error {
	stripSecret(secret, func(key string) bool {
		return slices.Contains(s.keys, key) && (s.Form != ClusterAPI || clusterAPIName(secret) != "")
	})
	return nil
}

// stripSecret drops all data of a Secret but that of some keys, and copies of the data.
func stripSecret(secret *kates.Secret, keep func(key string) bool) {
	secret.ManagedFields = nil
	delete(secret.Annotations, corev1.LastAppliedConfigAnnotation)
	maps.DeleteFunc(secret.Data, func(key string, _ []byte) bool { return !keep(key) })
}

// clusterAPIName returns the name of the cluster whose kubeconfig a Secret has, if it has one.
func clusterAPIName(secret *kates.Secret) string {
	cluster := secret.Labels[clusterAPILabel]
	if secret.Type != clusterAPIType || secret.Name != cluster+clusterAPISuffix {
		return ""
	}
	return cluster
}

func (s *secrets) members(all []*kates.Secret) []fleet.Member {
	var claims []claim
	for _, secret := range byAge(all) {
		name := s.nameOf(secret)
		if name == "" || !live(secret) {
			continue
		}
		where := "Secret " + secret.Namespace + "/" + secret.Name
		m := s.member(s, secret)
		m.Name = name
		if m.Err != nil {
			m.Err = fmt.Errorf("%s: %w", where, m.Err)
		}
		claims = append(claims, claim{where, m})
	}
	return s.names.settle(claims)
}

// nameOf returns the name of a Secret's cluster, or "" if it is none.
func (s *secrets) nameOf(secret *kates.Secret) string {
	name := secret.Name
	switch s.Form {
	case ClusterAPI:
		if name = clusterAPIName(secret); name == "" {
			return ""
		}
	case ArgoCD:
		if s.Name == nil {
			return argoName(secret)
		}
	}
	if s.Name != nil {
		return s.Name(secret)
	}
	return secret.Namespace + "/" + name
}

// plain makes a member of a Secret that has a kubeconfig.
func (s *secrets) plain(secret *kates.Secret) fleet.Member {
	return kubeconfigMember(secret, s.Key, s.terms)
}

// kubeconfigMember makes a member of the kubeconfig that a Secret has under a key.
func kubeconfigMember(secret *kates.Secret, key string, terms terms) fleet.Member {
	m := fleet.Member{Labels: maps.Clone(secret.Labels)}
	text, ok := secret.Data[key]
	if !ok {
		m.Err = fmt.Errorf("it has no data under %q", key)
		return m
	}
	m.Config, m.Version, m.Err = fromText(text, "", terms)
	return m
}

// broken is a source whose options make no sense.
type broken struct {
	name string
	err  error
}

// String implements [fleet.Source].
func (b broken) String() string { return b.name }

// Run implements [fleet.Source].
func (b broken) Run(_ context.Context, _ func([]fleet.Member)) error { return b.err }

var errNoHome = errors.New("there is no client of the home cluster")
