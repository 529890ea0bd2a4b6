package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/kates"
)

// argoKeys are the keys of a Secret's data that Argo CD reads.
var argoKeys = []string{"name", "server", "config", "project", "namespaces", "clusterResources"}

// argoNamespace is where Argo CD's documentation installs it.
const argoNamespace = "argocd"

// argoHome is what Argo CD calls the cluster that it is in.
const argoHome = "https://kubernetes.default.svc"

// argoConfig is the config of a Secret. See Argo CD's documentation of declarative clusters.
type argoConfig struct {
	Username           string    `json:"username"`
	Password           string    `json:"password"`
	BearerToken        string    `json:"bearerToken"`
	TLSClientConfig    argoTLS   `json:"tlsClientConfig"`
	AWSAuthConfig      *argoAWS  `json:"awsAuthConfig"`
	ExecProviderConfig *argoExec `json:"execProviderConfig"`
	DisableCompression bool      `json:"disableCompression"`
	ProxyURL           string    `json:"proxyUrl"`
}

type argoTLS struct {
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName"`
	CertData   []byte `json:"certData"`
	KeyData    []byte `json:"keyData"`
	CAData     []byte `json:"caData"`
}

type argoAWS struct {
	ClusterName string `json:"clusterName"`
	RoleARN     string `json:"roleARN"`
	Profile     string `json:"profile"`
}

type argoExec struct {
	Command     string            `json:"command"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	APIVersion  string            `json:"apiVersion"`
	InstallHint string            `json:"installHint"`
}

// argoName returns the name of a cluster by Argo CD's rules.
func argoName(secret *kates.Secret) string {
	if name := string(secret.Data["name"]); name != "" {
		return name
	}
	if server := string(secret.Data["server"]); checkAddress("server", server) == nil {
		return server
	}
	return secret.Namespace + "/" + secret.Name
}

// argo makes a member of a Secret of Argo CD.
func (s *secrets) argo(secret *kates.Secret) fleet.Member {
	m := fleet.Member{Labels: maps.Clone(secret.Labels)}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	for _, key := range []string{"project", "namespaces", "clusterResources"} {
		if value := secret.Data[key]; len(value) > 0 {
			m.Labels["argocd.argoproj.io/"+key] = string(value)
		}
	}
	var config argoConfig
	if text := secret.Data["config"]; len(text) > 0 {
		if err := json.Unmarshal(text, &config); err != nil { // which may quote the text
			m.Err = wrongConfig(text)
			return m
		}
	}
	server := string(secret.Data["server"])
	if server == argoHome && config.anonymous() {
		m.Err = errors.New("it stands for the cluster that it is in: source.AllowHome allows it")
		if s.terms.Allow&AllowHome != 0 {
			m.Client, m.Err = s.home, nil
		}
		return m
	}
	m.Config, m.Version, m.Err = config.connect(server, s.terms)
	return m
}

// wrongConfig returns what is wrong with a config that does not decode. It quotes no value.
func wrongConfig(text []byte) error {
	var content any
	if json.Unmarshal(text, &content) != nil {
		return errors.New("its config is no JSON")
	}
	if misfit := asjson.MisfitOf(content, reflect.TypeFor[argoConfig]()); misfit != nil {
		return fmt.Errorf("its config: %w", misfit)
	}
	return errors.New("its config has values of wrong types")
}

// anonymous reports whether a configuration has no credentials.
func (c argoConfig) anonymous() bool {
	return c.Username == "" && c.Password == "" && c.BearerToken == "" && len(c.TLSClientConfig.CertData) == 0 &&
		c.AWSAuthConfig == nil && c.ExecProviderConfig == nil
}

// connect returns how a server is reached.
func (c argoConfig) connect(server string, terms terms) (*rest.Config, string, error) {
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = server
	cluster.InsecureSkipTLSVerify = c.TLSClientConfig.Insecure
	cluster.TLSServerName = c.TLSClientConfig.ServerName
	cluster.CertificateAuthorityData = c.TLSClientConfig.CAData
	cluster.DisableCompression = c.DisableCompression
	cluster.ProxyURL = c.ProxyURL
	user.ClientCertificateData, user.ClientKeyData = c.TLSClientConfig.CertData, c.TLSClientConfig.KeyData
	user.Username, user.Password, user.Token = c.Username, c.Password, c.BearerToken
	user.Exec = c.exec()
	to, err := connect(cluster, user, terms)
	return to.config, to.version, err
}

// exec returns the program that gets credentials, or nil.
func (c argoConfig) exec() *clientcmdapi.ExecConfig {
	exec := &clientcmdapi.ExecConfig{InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
	switch aws, program := c.AWSAuthConfig, c.ExecProviderConfig; {
	case aws != nil: // Argo CD's own program, as Argo CD runs it
		exec.APIVersion, exec.Command = "client.authentication.k8s.io/v1beta1", "argocd-k8s-auth"
		exec.Args = []string{"aws", "--cluster-name", aws.ClusterName}
		if aws.RoleARN != "" {
			exec.Args = append(exec.Args, "--role-arn", aws.RoleARN)
		}
		if aws.Profile != "" {
			exec.Args = append(exec.Args, "--profile", aws.Profile)
		}
	case program != nil:
		exec.APIVersion, exec.Command, exec.Args = program.APIVersion, program.Command, program.Args
		exec.InstallHint = program.InstallHint
		for _, name := range slices.Sorted(maps.Keys(program.Env)) {
			exec.Env = append(exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: program.Env[name]})
		}
	default:
		return nil
	}
	return exec
}
