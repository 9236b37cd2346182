//! The kinds beside those that memgate reads, in the groups of each platform: of all versions that are known, older and
//! announced ones too. An object of these kinds is passed over, and its kind is not taken for a misspelt one.

use memgate_model::family::OtherKinds;

pub(super) static ARKONIS: &[OtherKinds] = &[
    (
        "arkonis.dev",
        "ArkEvent ArkFlow ArkNotify ArkRegistry ArkService ArkTeam ArkonisPipeline ArkonisService",
    ),
    ("agentops.agentops.io", "AgentPipeline AgentService"),
    ("kubeswarm.io", "SwarmBudget SwarmEvent SwarmNotify SwarmPolicy SwarmRegistry SwarmRun SwarmTeam"),
];

pub(super) static ARK: &[OtherKinds] = &[(
    "ark.mckinsey.com",
    "A2AServer A2ATask Agent Evaluation Evaluator ExecutionEngine ExecutionProfile MCPServer Model \
     Team Tool ToolApprovalRequest ToolInteraction Workspace",
)];

/// Also those that are only in Orloj's own store: manifests for `orlojctl` have them.
pub(super) static ORLOJ: &[OtherKinds] = &[(
    "orloj.dev",
    "AgentPolicy AgentRole AgentSystem ContextAdapter EvalDataset EvalRun McpServer SealedSecret \
     Secret Session Task TaskApproval TaskSchedule TaskWebhook Tool ToolApproval ToolPermission \
     Worker",
)];

pub(super) static ORKA: &[OtherKinds] = &[
    (
        "core.orka.ai",
        "AgentExecutionAdjudication AgentExecutionControl AgentExecutionPolicy AgentRuntime BranchClaim \
     Connection ConnectorProvider ControllerEpoch ExternalEffect OutboundAccessPolicy PromptAttempt \
     Provider Publication RepositoryMonitor RepositoryScan RuntimePool RuntimeSessionControl Skill \
     SubstrateActorPool Tool",
    ),
    ("gateway.orka.ai", "Gateway GatewayBinding GatewayClass"),
    (
        "workspace.orka.ai",
        "ExecutionWorkspace ExecutionWorkspaceCheckpoint ExecutionWorkspaceClass ExecutionWorkspacePool \
     ExecutionWorkspaceProvider",
    ),
    ("acp.workspace.orka.ai", "RuntimeProviderConfig RuntimeWorkspaceProfile"),
    ("fake.workspace.orka.ai", "FakePoolParameters FakeProviderConfig"),
    ("core.mercan.ai", "Agent Provider Task Tool"),
];

pub(super) static SYMPOZIUM: &[OtherKinds] = &[
    (
        "sympozium.ai",
        "AgentRunTurn AgentRuntime CellnExecutionPolicy CellnRuntimeProfile CellnTool CellnToolSubmission \
     ClusterCellnTool HarnessSession MCPServer Model ModelConnection SympoziumConfig SympoziumPolicy \
     SympoziumSchedule WorkspaceSession",
    ),
    ("k8sclaw.io", CLAW),
    ("kubeclaw.io", CLAW),
    ("agents.x-k8s.io", SANDBOXES),
    ("extensions.agents.x-k8s.io", SANDBOXES),
];

/// Their pods are those of workloads.
const SANDBOXES: &str = "Sandbox SandboxTemplate SandboxClaim SandboxWarmPool";

const CLAW: &str = "AgentRun ClawInstance ClawPolicy ClawSchedule SkillPack";

/// Of 0.x and 1.x. `Harness` and `AgentTemplate` of `kagent.dev` are among the kinds that are read.
pub(super) static KAGENT: &[OtherKinds] = &[
    (
        "kagent.dev",
        "AgentCronJob AgentHarness CronAgent MCPServer ModelProviderConfig Provider RemoteMCPServer Sandbox \
     SandboxTemplate ScheduledRun Team ToolServer WorkflowRun WorkflowTemplate",
    ),
    ("api.kagent.dev", "EgressPolicy ModelProviderConfig RemoteMCPServer SandboxTemplate"),
];
