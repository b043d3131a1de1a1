// A guest that does what the public web client is documented to do: logs in as `web`, joins by id and password, makes a
// new connection for every offer, and talks text on the last channel that was announced.

const HEARTBEAT_MS = 3000;
// The older client answers once it has gathered every address, the newer one at once.
const GATHERING_MS = 10_000;

class WebClient {
  #socket;
  #user;
  #host;
  #peer = null;
  #early = [];
  #trickles;
  tracks = [];
  messages = [];
  refusals = [];
  channels = 0;
  channel = null;
  video = null;

  constructor({ url, id, password, trickles }) {
    this.#host = id;
    this.#trickles = trickles;
    this.joined = new Promise((resolve, reject) => Object.assign(this, { resolveJoined: resolve, rejectJoined: reject }));
    this.opened = new Promise((resolve) => { this.resolveOpened = resolve; });
    this.#socket = new WebSocket(url);
    this.#socket.onopen = () => this.#say({ type: 'login', user_id: 'web', session_resume_version: 1 });
    this.#socket.onmessage = ({ data }) => this.#hear(JSON.parse(data), password);
    this.timer = setInterval(() => this.#say({ type: 'ping', ts: Date.now() }), HEARTBEAT_MS);
  }

  #say(message) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #forward(type, content) {
    this.#say({ type, transmission_id: this.#host, user_id: this.#user, remote_user_id: this.#host, ...content });
  }

  async #hear(message, password) {
    if (message.type === 'login') {
      [this.#user] = message.user_id.split('@');
      this.#say({ type: 'join_transmission', user_id: this.#user, transmission_id: `${this.#host}@${password}` });
    } else if (message.type === 'user_join_transmission' && message.status === 'failed') {
      this.refusals.push(message.reason);
      this.rejectJoined(new Error(message.reason));
    } else if (message.type === 'offer') {
      await this.#answer(message.sdp);
    } else if (message.type === 'new_candidate_mid') {
      const candidate = { candidate: message.candidate, sdpMid: message.mid };
      if (this.#peer?.remoteDescription) await this.#peer.addIceCandidate(candidate);
      else this.#early.push(candidate);
    }
  }

  async #answer(sdp) {
    this.#peer?.close();
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    peer.ontrack = ({ track }) => this.#show(track);
    peer.ondatachannel = ({ channel }) => {
      this.channels += 1;
      this.channel = channel;
      channel.binaryType = 'arraybuffer';
      channel.onmessage = ({ data }) => this.messages.push(typeof data === 'string' ? data : new TextDecoder().decode(data));
      if (channel.readyState === 'open') this.resolveOpened();
      else channel.onopen = () => this.resolveOpened();
    };
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === 'connected') this.resolveJoined();
      if (peer.connectionState === 'failed') this.rejectJoined(new Error('no connection'));
    };
    peer.onicecandidate = ({ candidate }) => {
      if (candidate?.candidate && this.#trickles) {
        this.#forward('new_candidate_mid', { candidate: candidate.candidate, mid: candidate.sdpMid });
      }
    };
    await peer.setRemoteDescription({ type: 'offer', sdp });
    for (const candidate of this.#early.splice(0)) await peer.addIceCandidate(candidate);
    await peer.setLocalDescription();
    if (!this.#trickles) await this.#gathered(peer);
    this.#forward('answer', { sdp: peer.localDescription.sdp });
  }

  #gathered(peer) {
    return new Promise((resolve) => {
      const look = () => { if (peer.iceGatheringState === 'complete') resolve(); };
      peer.onicegatheringstatechange = look;
      setTimeout(resolve, GATHERING_MS);
      look();
    });
  }

  #show(track) {
    this.tracks.push(`${track.kind} ${track.id}`);
    if (track.kind !== 'video' || this.video) return;
    this.video = document.createElement('video');
    Object.assign(this.video, { muted: true, autoplay: true, srcObject: new MediaStream([track]) });
    document.body.append(this.video);
  }

  // The colours at `spots` once `count` pictures were shown.
  async look(count, spots) {
    for (let shown = 0; shown < count; shown += 1) {
      await new Promise((resolve) => this.video.requestVideoFrameCallback(resolve));
    }
    const { videoWidth: width, videoHeight: height } = this.video;
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(this.video, 0, 0);
    return { size: { width, height }, colours: spots.map(({ x, y }) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3)) };
  }

  // The first message whose number is `type`.
  async told(type) {
    for (;;) {
      const found = this.messages.map((text) => JSON.parse(text)).find((message) => message.type === type);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  send(message) {
    this.channel.send(JSON.stringify(message));
  }

  leave() {
    this.#say({ type: 'user_leave_transmission', user_id: this.#user, transmission_id: this.#host });
    clearInterval(this.timer);
    this.#peer?.close();
  }
}

window.startWebClient = (options) => { window.webClient = new WebClient(options); };
