// Manifests of the scenarios. An agent refers to a memory by its name, in its own namespace.

export const memory = (name = 'notes', spec = 'backend: in-context') =>
    `apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata:\n  name: ${name}\n  namespace: team-a\nspec:\n  ${spec}\n`;

export const REDIS = 'backend: redis\n  redis:\n    secretRef:\n      name: notes-redis\n    ttlSeconds: 5400';

export const agent = (name = 'scout', memoryRef = 'notes') =>
    `apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata:\n  name: ${name}\n  namespace: team-a\nspec:\n  model: llama3.2\n  systemPrompt: You scout for facts.\n  memoryRef:\n    name: ${memoryRef}\n`;

export const pod = (agent = 'scout') => `apiVersion: v1
kind: Pod
metadata:
  name: ${agent}-agent
  namespace: team-a
  labels:
    app.kubernetes.io/name: agent
    app.kubernetes.io/instance: ${agent}
    app.kubernetes.io/managed-by: ark-operator
    arkonis.dev/deployment: ${agent}
spec:
  containers:
    - name: agent
      image: ghcr.io/arkonis-dev/ark-runtime:v1
`;
